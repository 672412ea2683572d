package dynamostore

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/middleware"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Implementations of the user that replace parts of a client.
type (
	usersTracing   struct{ tracing.NopTracerProvider }
	usersMeter     struct{ metrics.NopMeterProvider }
	usersSigner    struct{ *v4.Signer }
	usersEndpoints struct{ dynamodb.EndpointResolverV2 }
	usersAuth      struct{ dynamodb.AuthSchemeResolver }
	usersHook      struct{}
)

func (usersHook) BeforeExecution(context.Context, *smithyhttp.InterceptorContext) error { return nil }

// usersLaterAuth signs everything except GetItem for another Region.
type usersLaterAuth struct{ of dynamodb.AuthSchemeResolver }

func (u usersLaterAuth) ResolveAuthSchemes(ctx context.Context, p *dynamodb.AuthResolverParameters) ([]*smithyauth.Option, error) {
	all, err := u.of.ResolveAuthSchemes(ctx, p)
	if p.Operation != opGetItem {
		for _, option := range all {
			smithyhttp.SetSigV4SigningRegion(&option.SignerProperties, "elsewhere-1")
		}
	}
	return all, err
}

// If a setting works only through the SDK's middleware, the store uses the SDK's transport, and
// Transport names the setting.
func TestWhatTheSDKAloneCanDoIsLeftToIt(t *testing.T) {
	for _, c := range []struct {
		why    string // part of what Transport says
		option func(*dynamodb.Options)
	}{
		{"APIOptions", func(o *dynamodb.Options) {
			o.APIOptions = append(o.APIOptions, func(*middleware.Stack) error { return nil })
		}},
		{"interceptors: BeforeExecution", func(o *dynamodb.Options) { o.Interceptors.AddBeforeExecution(usersHook{}) }},
		{"TracerProvider, a dynamostore.usersTracing", func(o *dynamodb.Options) { o.TracerProvider = usersTracing{} }},
		{"MeterProvider, a dynamostore.usersMeter", func(o *dynamodb.Options) { o.MeterProvider = usersMeter{} }},
		{"ClientLogMode", func(o *dynamodb.Options) { o.ClientLogMode = aws.LogRetries }},
		{"signer of its own, a dynamostore.usersSigner", func(o *dynamodb.Options) { o.HTTPSignerV4 = usersSigner{v4.NewSigner()} }},
		{"anonymous", func(o *dynamodb.Options) { o.Credentials = aws.AnonymousCredentials{} }},
		{"anonymous", func(o *dynamodb.Options) { o.Credentials = nil }},
		{"an EndpointResolver", func(o *dynamodb.Options) {
			o.EndpointResolver = dynamodb.EndpointResolverFromURL("http://dynamodb.test") //nolint:staticcheck // deprecated, but still works
		}},
		{"EndpointResolverV2 of its own, a dynamostore.usersEndpoints", func(o *dynamodb.Options) {
			o.EndpointResolverV2 = usersEndpoints{dynamodb.NewDefaultEndpointResolverV2()}
		}},
		{"discovers its endpoint", func(o *dynamodb.Options) {
			o.EndpointDiscovery.EnableEndpointDiscovery, o.BaseEndpoint = aws.EndpointDiscoveryEnabled, nil
		}},
		{"EnableAcceptEncodingGzip", func(o *dynamodb.Options) { o.EnableAcceptEncodingGzip = true }},
		{"AuthSchemeResolver of its own, a dynamostore.usersAuth", func(o *dynamodb.Options) { o.AuthSchemeResolver = usersAuth{o.AuthSchemeResolver} }},
		{"AuthSchemeResolver of its own, a *dynamostore.usersLaterAuth", func(o *dynamodb.Options) { o.AuthSchemeResolver = &usersLaterAuth{o.AuthSchemeResolver} }},
	} {
		t.Run(c.why, func(t *testing.T) {
			client, _ := inMemory()
			var bySDK []bool
			s := New(dynamodb.New(client.Options(), c.option, func(o *dynamodb.Options) {
				o.HTTPClient = doFunc(func(r *http.Request) (*http.Response, error) {
					bySDK = append(bySDK, madeBySDK())
					return good(r, nil)
				})
			}), "test")
			if which, why := s.Transport(); which != TransportSDK || !strings.Contains(why, c.why) {
				t.Errorf("the transport is %q, since %q; want the SDK's, since %q", which, why, c.why)
			}
			if strings.HasPrefix(c.why, "discovers") {
				return // the SDK's request for endpoints runs in a goroutine that outlives the call
			}
			if _, err := s.Acquire(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if len(bySDK) != 1 || !bySDK[0] {
				t.Errorf("made by the SDK: %v; want one request, and that", bySDK)
			}
		})
	}
}

// A new option of the client may work only through middleware. If this test fails, examine the
// option, and then add its name.
func TestEveryOptionOfTheClientIsKnown(t *testing.T) {
	known := strings.Fields("APIOptions AppID BaseEndpoint ClientLogMode Credentials DefaultsMode DisableValidateResponseChecksum EnableAcceptEncodingGzip " +
		"EndpointDiscovery EndpointOptions EndpointResolver EndpointResolverV2 HTTPSignerV4 IdempotencyTokenProvider Logger AccountIDEndpointMode Region " +
		"RetryMaxAttempts RetryMode Retryer RuntimeEnvironment TracerProvider MeterProvider HTTPClient AuthSchemeResolver AuthSchemes AuthSchemePreference " +
		"Interceptors DisableClockSkewCorrection Protocol")
	for _, name := range exportedFields(dynamodb.Options{}) {
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found {
			t.Errorf("dynamodb.Options.%s is new", name)
		}
	}
}

// The rehearsal finds every setting that changes a request.
func TestWhatTheRehearsalCantMatchIsLeftToTheSDK(t *testing.T) {
	for _, c := range []struct {
		name, why string
		option    func(*dynamodb.Options)
	}{
		{"another endpoint", "sends a POST to", func(o *dynamodb.Options) { o.EndpointResolver = dynamodb.EndpointResolverFromURL("http://other.test") }}, //nolint:staticcheck // as above
		{"a header more", "", func(o *dynamodb.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Users-Own", "x"))
		}},
		{"a header less", "User-Agent", func(o *dynamodb.Options) {
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("users", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
					in.Request.(*smithyhttp.Request).Header.Add("User-Agent", "x")
					return next.HandleFinalize(ctx, in)
				}), middleware.After)
			})
		}},
		{"another signature", "Authorization", func(o *dynamodb.Options) { o.AuthSchemeResolver = regional{o.AuthSchemeResolver} }},
		{"no names of what is signed", "is made in another way", authorizedBy("AWS4-HMAC-SHA256 Signature=0")},
		{"names of what is signed at the end", "is made in another way", authorizedBy("AWS4-HMAC-SHA256 SignedHeaders=host")},
		{"a signed trace", "is made in another way", authorizedBy("AWS4-HMAC-SHA256 SignedHeaders=host;x-amz-date;x-amzn-trace-id, Signature=0")},
		{"a signed field that isn't sent", "is made in another way", authorizedBy("AWS4-HMAC-SHA256 SignedHeaders=host;x-other, Signature=0")},
		{"another signature of the same", "is made in another way", authorizedBy("AWS4-HMAC-SHA256 SignedHeaders=host;x-amz-date, Signature=0")},
		{"an escaped path", "", func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://dynamodb.test/a%2Fb") }},
		{"a query", "", func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("http://dynamodb.test/?a=b") }},
		{"discovery", "discovers its endpoint", func(o *dynamodb.Options) { o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryEnabled }},
		{"no endpoint", "no request to go by", func(o *dynamodb.Options) { o.Region, o.BaseEndpoint = "", nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, _ := inMemory()
			rec := &recorder{kept: nil}
			s := New(dynamodb.New(client.Options(), c.option, func(o *dynamodb.Options) { o.HTTPClient = rec }), "test", forced)
			which, why := s.Transport()
			if c.why != "" && (which != TransportSDK || !strings.Contains(why, c.why)) {
				t.Errorf("the transport is %q, since %q; want the SDK's, since %q", which, why, c.why)
			}
			sdk := New(dynamodb.New(client.Options(), c.option, func(o *dynamodb.Options) { o.HTTPClient = rec }), "test", func(o *Options) { o.Transport = TransportSDK })
			_, err := s.Get(t.Context(), claim.ID, now)
			_, want := sdk.Get(t.Context(), claim.ID, now)
			if (err == nil) != (want == nil) {
				t.Errorf("%v; by the SDK %v", err, want)
			}
			// With endpoint discovery, the SDK asks for endpoints in the background, perhaps later
			// than this.
			sent := slices.DeleteFunc(rec.take(t), func(r sent) bool { return strings.HasSuffix(r.header.Get("X-Amz-Target"), "DescribeEndpoints") })
			if len(sent) == 2 && (sent[0].url != sent[1].url || sent[0].header.Get("X-Users-Own") != sent[1].header.Get("X-Users-Own")) {
				t.Errorf("sent %+v; by the SDK %+v", sent[0], sent[1])
			}
		})
	}
}

// authorizedBy sets the header field Authorization of every request.
func authorizedBy(authorization string) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("users", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				in.Request.(*smithyhttp.Request).Header.Set(fieldTrace, "Root=1")
				in.Request.(*smithyhttp.Request).Header.Set(fieldSignature, authorization)
				return next.HandleFinalize(ctx, in)
			}), middleware.After)
		})
	}
}

func forced(o *Options) { o.Transport = TransportDirect }

// regional signs everything for another Region.
type regional struct{ of dynamodb.AuthSchemeResolver }

func (u regional) ResolveAuthSchemes(ctx context.Context, p *dynamodb.AuthResolverParameters) ([]*smithyauth.Option, error) {
	all, err := u.of.ResolveAuthSchemes(ctx, p)
	for _, option := range all {
		smithyhttp.SetSigV4SigningRegion(&option.SignerProperties, "elsewhere-1")
	}
	return all, err
}

// A forced transport is used unless it can't work with the client.
func TestATransportCanBeForced(t *testing.T) {
	client, _ := inMemory()
	logged := dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.ClientLogMode = aws.LogRetries })
	for _, c := range []struct {
		client *dynamodb.Client
		asked  Transport
		want   Transport
		why    string
	}{
		{client, TransportAuto, TransportDirect, ""},
		{client, TransportDirect, TransportDirect, ""},
		{client, TransportSDK, TransportSDK, "Options.Transport, or the environment variable LAMBDAIDEM_TRANSPORT, asks for it"},
		{logged, TransportAuto, TransportSDK, "the client has a ClientLogMode"},
		{logged, TransportDirect, TransportDirect, ""},
	} {
		if which, why := New(c.client, "test", func(o *Options) { o.Transport = c.asked }).Transport(); which != c.want || why != c.why {
			t.Errorf("asked for %q: %q, %q; want %q, %q", c.asked, which, why, c.want, c.why)
		}
	}
}

// An anonymous client has no credentials to sign with, so the SDK's transport is used, even if the
// direct one is forced.
func TestAnAnonymousClientCanBeForced(t *testing.T) {
	client, _ := inMemory(good)
	s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.Credentials = nil }), "test", forced)
	if which, why := s.Transport(); which != TransportSDK || why == "" {
		t.Errorf("the transport is %q, since %q; want the SDK's", which, why)
	}
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Error(err)
	}
}

// A forced transport calls the user's endpoint resolver for each request.
func TestAUsersEndpointResolverIsAskedEachTimeByAForcedTransport(t *testing.T) {
	hosts := &rotating{}
	rec := &recorder{}
	client, _ := inMemory()
	s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.EndpointResolverV2, o.HTTPClient = hosts, rec }), "test", forced)
	if which, why := s.Transport(); which != TransportDirect {
		t.Skip(why)
	}
	hosts.host = "one.test"
	_, _ = s.Get(t.Context(), claim.ID, now)
	hosts.host = "two.test"
	_, _ = s.Get(t.Context(), claim.ID, now)
	if len(rec.sent) != 2 || rec.sent[0].url != "http://one.test/" || rec.sent[1].url != "http://two.test/" {
		t.Errorf("sent %+v; want one to each host", rec.sent)
	}
}

type rotating struct{ host string }

func (r *rotating) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	return smithyendpoints.Endpoint{URI: url.URL{Scheme: "http", Host: r.host + strings.Repeat("zero.test", 1-min(1, len(r.host)))}, Properties: smithy.Properties{}}, nil
}

// The first calls may be concurrent.
func TestTheFirstCallsMayComeAtOnce(t *testing.T) {
	rec := &recorder{kept: nil}
	client, _ := inMemory()
	s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = rec }), "test")
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			if _, err := s.Get(t.Context(), claim.ID, time.Now()); err != nil {
				t.Error(err)
			}
			if which, why := s.Transport(); which != TransportDirect {
				t.Error(why)
			}
		})
	}
	calls.Wait()
	for _, r := range rec.sent {
		if r.bySDK {
			t.Error("a request was made by the SDK")
		}
	}
	if len(rec.sent) != 16 {
		t.Errorf("%d requests; want 16: the rehearsal goes nowhere", len(rec.sent))
	}
}

func exportedFields(of any) []string {
	var names []string
	for i := range reflect.TypeOf(of).NumField() {
		if f := reflect.TypeOf(of).Field(i); f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}
