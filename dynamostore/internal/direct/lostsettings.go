package direct

import (
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/tracing"
)

// Lost returns a description of the first setting of the client that a request built without the
// SDK's middleware would ignore or apply wrongly. It returns "" if there is none. Lost covers only
// settings that the test request of [New] can't reveal, such as logging, which only the middleware
// does.
func Lost(client *dynamodb.Client) string {
	o := client.Options()
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
	// The user's own resolver may return different results for different operations. The rehearsal
	// in New can't reveal that, because it compares the SDK's request with this package's for one
	// operation only.
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
