package dynamostore

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// Transport selects the code that sends a store's requests to DynamoDB.
type Transport string

const (
	// TransportAuto uses the direct transport, unless the client has settings that only
	// the SDK's middleware carries out, such as APIOptions or tracing.
	TransportAuto Transport = ""
	// TransportDirect sends requests without the SDK's middleware. It takes less than half of the
	// SDK's processor time. It uses the HTTP client, credentials, Region and endpoint of the SDK's
	// client, and signs requests as the SDK does.
	//
	// The direct transport makes only the first try of each request. After any failure other than a
	// failed condition, the SDK's client takes over and counts that try as its own first one. So
	// errors, retries, the retry quota and the correction for a wrong local clock are those of the
	// SDK.
	TransportDirect Transport = "direct"
	// TransportSDK sends all requests through the SDK's client.
	TransportSDK Transport = "sdk"
)

// directTransport returns the direct transport for the store's client, or an error that says why
// the transport can't make the requests that the user's SDK client would make. The last parameter
// is true if the user has chosen TransportDirect, and so accepts that the transport ignores some of
// the client's settings, such as tracing. If it is false, such a setting is an error too, and the
// store uses the SDK's client.
//
// This value is a placeholder, which the function init in the file direct.go replaces. If somebody
// deletes that file, to do without the direct transport, the SDK's client sends every request.
var directTransport = func(*wire.Client, *dynamodb.Client, bool) (wire.DirectTransport, error) {
	return nil, errors.New("this program is built without the direct transport")
}

// Transport returns the transport that the store uses. If it is [TransportSDK], reason says why the
// store does not use the direct transport.
func (s *Store) Transport() (which Transport, reason string) {
	if s.whySDK != "" {
		return TransportSDK, s.whySDK
	}
	return TransportDirect, ""
}

// chooseTransport sets the store's transport according to Options.Transport and the
// settings of the user's client.
func (s *Store) chooseTransport(users *dynamodb.Client) {
	if s.opts.Transport == TransportSDK {
		s.whySDK = "Options.Transport, or the environment variable " + transportVariable + ", asks for it"
		return
	}
	first, err := directTransport(s.wire, users, s.opts.Transport == TransportDirect)
	if err != nil {
		s.whySDK = err.Error()
		return
	}
	s.wire.Use(first)
}
