package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// Transport is what carries a store's requests to DynamoDB.
type Transport string

const (
	// TransportAuto is direct where nothing is lost by it, else the SDK's.
	TransportAuto Transport = ""
	// TransportDirect sends requests over the client's own HTTP client, with its
	// credentials, Region and endpoint, signed as the SDK signs them, but without the
	// SDK's middleware: in less than half of the processor time. What does not end
	// at once in success or in a refusal by its condition goes on through the SDK's
	// client, as its own first attempt: retries, errors, the retry quota and the
	// correction of the clock are the SDK's.
	TransportDirect Transport = "direct"
	// TransportSDK is the SDK's client for everything.
	TransportSDK Transport = "sdk"
)

// transport makes the first attempts of requests in place of the SDK's client.
type transport interface {
	wire.First
	// Ready returns an error that says why the transport can't be used, if it can't.
	Ready() error
}

// directTransport returns the direct transport for the requests of a client. If it would
// lose something that the user's client does, it says what, unless it is forced. File
// direct.go sets it; without that file the SDK's client makes all attempts.
var directTransport = func(*wire.Client, *dynamodb.Client, bool) (_ transport, lost string) {
	return nil, "this program is built without the direct transport"
}

// Transport returns which transport serves the store, and if it is the SDK's, why.
func (s *Store) Transport() (which Transport, why string) {
	if s.first == nil {
		return TransportSDK, s.whySDK
	}
	if err := s.first.Ready(); err != nil {
		return TransportSDK, err.Error()
	}
	return TransportDirect, ""
}

// choose gives the store the transport that the options ask for.
func (s *Store) choose(users *dynamodb.Client) {
	if s.opts.Transport == TransportSDK {
		s.whySDK = "Options.Transport, or the environment variable " + transportVariable + ", asks for it"
		return
	}
	if s.first, s.whySDK = directTransport(s.wire, users, s.opts.Transport == TransportDirect); s.first != nil {
		s.wire.Use(s.first)
	}
}
