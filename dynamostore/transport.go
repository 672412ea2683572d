package dynamostore

import (
	"context"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/tracing"
)

// transport carries the store's requests to DynamoDB, and their answers back. The
// context has the call's verdict: see witnessed.
type transport interface {
	send(context.Context, request) (found, error)
}

var (
	_ transport = sdks{}
	_ transport = (*direct)(nil)
)

// sdks is the transport of the SDK's client.
type sdks struct{ client *dynamodb.Client }

func (t sdks) send(ctx context.Context, r request) (found, error) { return r.through(ctx, t.client) }

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

// Transport returns which transport serves the store, and if it is the SDK's, why.
func (s *Store) Transport() (which Transport, why string) {
	d, ok := s.transport.(*direct)
	if !ok {
		return TransportSDK, s.whySDK
	}
	if err := d.ready(); err != nil {
		return TransportSDK, err.Error()
	}
	return TransportDirect, ""
}

// whySDK says why the SDK's client is to be the transport; "" if it is not.
func (o *Options) whySDK(users dynamodb.Options) string {
	switch o.Transport {
	case TransportSDK:
		return "Options.Transport, or the environment variable " + transportVariable + ", asks for it"
	case TransportDirect:
		return ""
	case TransportAuto:
	}
	return lostWithoutSDK(users)
}

// lostWithoutSDK says what of a client's settings works by the SDK's middleware
// alone, and would be passed over; "" if nothing does. What shows in a request is
// not looked for here: see direct.rehearse.
func lostWithoutSDK(o dynamodb.Options) string {
	if len(o.APIOptions) > 0 {
		return "the client has APIOptions, which may add middleware"
	}
	if registry := reflect.ValueOf(o.Interceptors); true {
		for i := range registry.NumField() {
			if registry.Field(i).Len() > 0 {
				return "the client has interceptors: " + registry.Type().Field(i).Name
			}
		}
	}
	if _, none := o.TracerProvider.(*tracing.NopTracerProvider); !none {
		return fmt.Sprintf("the client has a TracerProvider, a %T", o.TracerProvider)
	}
	if _, none := o.MeterProvider.(metrics.NopMeterProvider); !none {
		return fmt.Sprintf("the client has a MeterProvider, a %T", o.MeterProvider)
	}
	if o.ClientLogMode != 0 {
		return "the client has a ClientLogMode"
	}
	if _, sdks := o.HTTPSignerV4.(*v4.Signer); !sdks {
		return fmt.Sprintf("the client has a signer of its own, a %T", o.HTTPSignerV4)
	}
	// One of the user's may choose by the operation, which one request can't tell.
	if resolver := reflect.TypeOf(o.AuthSchemeResolver); resolver.Kind() != reflect.Pointer ||
		resolver.Elem().PkgPath() != reflect.TypeFor[dynamodb.Options]().PkgPath() {
		return fmt.Sprintf("the client has an AuthSchemeResolver of its own, a %v", resolver)
	}
	if o.Credentials == nil {
		return "the client is anonymous: it has no credentials"
	}
	if o.EndpointResolver != nil { //nolint:staticcheck // it is deprecated, and still works
		return "the client has an EndpointResolver"
	}
	if reflect.TypeOf(o.EndpointResolverV2) != reflect.TypeOf(dynamodb.NewDefaultEndpointResolverV2()) {
		return fmt.Sprintf("the client has an EndpointResolverV2 of its own, a %T", o.EndpointResolverV2)
	}
	if o.EndpointDiscovery.EnableEndpointDiscovery == aws.EndpointDiscoveryEnabled {
		return "the client discovers its endpoint"
	}
	if o.EnableAcceptEncodingGzip {
		return "the client has EnableAcceptEncodingGzip"
	}
	return ""
}
