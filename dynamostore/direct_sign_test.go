package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
)

// A signer that does more than sign must be called for each request.
func TestE1_ASignerThatDoesMoreIsAsked(t *testing.T) {
	count := 0
	token := withToken("TOKEN")
	for name, option := range map[string]func(*dynamodb.Options){
		"logging": func(o *dynamodb.Options) {
			o.HTTPSignerV4 = v4.NewSigner(func(s *v4.SignerOptions) {
				s.LogSigning = true
				s.Logger = logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
					if strings.Contains(fmt.Sprintf(format, v...), opPutItem) {
						count++
					}
				})
			})
		},
		"the user's own": func(o *dynamodb.Options) {
			o.HTTPSignerV4 = signerFunc(func(r *http.Request) {
				if r.Header.Get(fieldDate) != "" || r.Header.Get(fieldToken) != "" {
					t.Error("what the signer sets is set")
				}
				if strings.Contains(r.Header.Get(fieldTarget), opPutItem) {
					count++
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			count = 0
			s, sent := recording(func(o *dynamodb.Options) { option(o); o.Credentials = token }, "records", TransportDirect)
			for range 3 {
				if _, err := s.Acquire(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			if all := sent.take(t); count != 3 || len(all) != 3 || all[0].bySDK {
				t.Errorf("of %d requests it signed %d; want 3, and made here", len(all), count)
			}
		})
	}
}

// signerFunc calls the function, and then signs as the SDK does.
type signerFunc func(*http.Request)

func (f signerFunc) SignHTTP(ctx context.Context, creds aws.Credentials, r *http.Request, hash, service, region string, at time.Time, optFns ...func(*v4.SignerOptions)) error {
	f(r)
	return v4.NewSigner().SignHTTP(ctx, creds, r, hash, service, region, at, optFns...)
}

// Concurrent requests share no state: each is signed for its own bytes, with the credentials that
// it got.
func TestE1_RequestsAtOnceAreSignedEachByItself(t *testing.T) {
	var turn sync.Mutex
	n := 0
	rotating := func(o *dynamodb.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			turn.Lock()
			defer turn.Unlock()
			n++
			return aws.Credentials{AccessKeyID: fmt.Sprint("AKID", n%3), SecretAccessKey: "SECRET", SessionToken: strings.Repeat("S", n%2*(1+n%7))}, nil
		})
	}
	s, sent := recording(rotating, "records", TransportDirect)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				c := claim
				c.ID = fmt.Sprint("lambdaidem#", i, strings.Repeat("x", j))
				if _, err := s.Acquire(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	requests := sent.take(t)
	for i := range requests {
		if got, want := requests[i].header.Get(fieldSignature), signed(t, &requests[i], &requests[i]); got != want {
			t.Fatalf("signed as\n%s\nwant\n%s", got, want)
		}
	}
	if len(requests) != 160 {
		t.Errorf("%d requests; want 160", len(requests))
	}
}

// Later requests may differ from the rehearsal: a resolver may return a different endpoint for
// each. All are signed as the SDK signs them.
func TestE1_EachEndpointIsSignedFor(t *testing.T) {
	elsewhere := func() smithy.Properties {
		var option smithyauth.Option
		option.SchemeID = smithyauth.SchemeIDSigV4
		smithyhttp.SetSigV4SigningName(&option.SignerProperties, "dax")
		smithyhttp.SetSigV4SigningRegion(&option.SignerProperties, "elsewhere-1")
		var p smithy.Properties
		smithyauth.SetAuthOptions(&p, []*smithyauth.Option{&option})
		return p
	}
	resolver := &steered{}
	option := func(o *dynamodb.Options) { o.EndpointResolverV2 = resolver }
	resolver.to = smithyendpoints.Endpoint{URI: url.URL{Scheme: "https", Host: "one.test"}}
	ours, direct := recording(option, "records", TransportDirect)
	sdk, sdks := recording(option, "records", TransportSDK)
	if which, why := ours.Transport(); which != TransportDirect {
		t.Fatal(why)
	}
	for name, to := range map[string]smithyendpoints.Endpoint{
		"the same":               resolver.to,
		"another host":           {URI: url.URL{Scheme: "https", Host: "two.test"}},
		"a path":                 {URI: url.URL{Scheme: "https", Host: "one.test", Path: "/dynamodb/v1"}},
		"a path to escape":       {URI: url.URL{Scheme: "https", Host: "one.test", Path: "/a b"}},
		"a default port":         {URI: url.URL{Scheme: "https", Host: "one.test:443"}},
		"another port":           {URI: url.URL{Scheme: "https", Host: "one.test:80"}},
		"a default port of http": {URI: url.URL{Scheme: "http", Host: "one.test:80"}},
		"another Region":         {URI: url.URL{Scheme: "https", Host: "one.test"}, Properties: elsewhere()},
		"a header":               {URI: url.URL{Scheme: "https", Host: "one.test"}, Headers: http.Header{"X-Of-Endpoint": {"a  b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			resolver.to = to
			for _, s := range []*Store{sdk, ours} {
				if _, err := s.Acquire(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			sameRequests(t, name, sdks.take(t), direct.take(t), false)
		})
	}
}

type steered struct{ to smithyendpoints.Endpoint }

func (s *steered) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	if s.to.URI.Host == "" {
		panic("no endpoint")
	}
	return s.to, nil
}

// With TransportDirect, requests are signed as the client's signer does it, whatever that signer
// is.
func TestE1_AForcedTransportSignsAsItsClientDoes(t *testing.T) {
	for name, option := range map[string]func(*dynamodb.Options){
		"nothing": func(o *dynamodb.Options) { o.HTTPSignerV4 = setting{"X-Users-Own", "a"} },
		"a token": func(o *dynamodb.Options) { o.HTTPSignerV4 = setting{fieldSignature, "Bearer x"} },
		"other names": func(o *dynamodb.Options) {
			o.HTTPSignerV4 = setting{fieldSignature, "X SignedHeaders=host;x-other, Signature=0"}
		},
		"a lower case": sending("x-users-own", "a"),
		"an empty one": sending("X-Users-Own", ""),
		"one more":     sending("X-Users-Own", "a"),
		"spaces":       sending("X-Users-Own", " a  b"),
	} {
		t.Run(name, func(t *testing.T) {
			sdk, sdks := recording(option, "records", TransportSDK)
			ours, direct := recording(option, "records", TransportDirect)
			if which, why := ours.Transport(); which != TransportDirect {
				t.Fatal(why)
			}
			for _, s := range []*Store{sdk, ours} {
				if _, err := s.Acquire(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			a, b := sdks.take(t)[0], direct.take(t)[0]
			if strings.Contains(b.header.Get(fieldSignature), algorithm) {
				if got, want := b.header.Get(fieldSignature), signed(t, &a, &b); got != want {
					t.Errorf("signed as\n%s\nwant\n%s", got, want)
				}
				a.header[fieldSignature] = b.header[fieldSignature]
			}
			for _, each := range []string{fieldInvocation, fieldDate} {
				a.header[each] = b.header[each]
			}
			if diff := cmp.Diff(a.header, b.header); diff != "" || a.bySDK == b.bySDK {
				t.Errorf("made by the SDK: %v and %v; SDK - direct +:\n%s", a.bySDK, b.bySDK, diff)
			}
		})
	}
}

// algorithm is the name of the SDK's signature algorithm.
const algorithm = "AWS4-HMAC-SHA256"

// setting is a signer that sets the date of a request and one header field.
type setting struct{ name, value string }

func (s setting) SignHTTP(_ context.Context, _ aws.Credentials, r *http.Request, _, _, _ string, _ time.Time, _ ...func(*v4.SignerOptions)) error {
	r.Header.Set(fieldDate, "20261122T000000Z")
	r.Header.Set(s.name, s.value)
	return nil
}

// sending returns an option that adds a header field to every request, with exactly the given
// spelling.
func sending(name, value string) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Build.Add(middleware.BuildMiddlewareFunc("users", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
				in.Request.(*smithyhttp.Request).Header[name] = []string{value}
				return next.HandleBuild(ctx, in)
			}), middleware.After)
		})
	}
}

// If a function in the client's options panics while New compares the requests, New does not panic,
// and the SDK's client makes all tries.
func TestE1_ARehearsalThatPanicsIsNone(t *testing.T) {
	resolver := &steered{} // panics when it is called
	s, sent := recording(func(o *dynamodb.Options) { o.EndpointResolverV2 = resolver }, "records", TransportDirect)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the SDK's request did not panic")
			}
		}()
		_, _ = s.Acquire(t.Context(), claim)
	}()
	resolver.to = smithyendpoints.Endpoint{URI: url.URL{Scheme: "https", Host: "one.test"}}
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	which, why := s.Transport()
	if all := sent.take(t); which != TransportSDK || why == "" || len(all) != 1 || !all[0].bySDK {
		t.Errorf("the transport is %q, since %q, and sent %+v; want the SDK's", which, why, all)
	}
}

// sourced is a provider of credentials that counts how often the SDK asks for their sources.
type sourced struct {
	aws.CredentialsProvider
	asked int
}

func (s *sourced) ProviderSources() []aws.CredentialSource {
	s.asked++
	return nil
}

// New compares the requests, so that the first request of a process need not. The SDK asks for the
// sources of credentials whenever it makes a request, and the direct transport never does.
func TestE1_NewComparesTheRequests(t *testing.T) {
	creds := &sourced{CredentialsProvider: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")}
	s, _ := recording(func(o *dynamodb.Options) { o.Credentials = creds }, "records", TransportAuto)
	byNew := creds.asked
	if _, err := s.Acquire(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if byNew == 0 || creds.asked != byNew {
		t.Errorf("the SDK made requests %d times in New and %d times after it; want some in New alone", byNew, creds.asked-byNew)
	}
}

// A program may have several stores with one client, such as a store for each tenant. New compares the
// requests only for the first one, and for a store whose requests have another header.
func TestE1_StoresOfOneClientShareTheComparison(t *testing.T) {
	creds := &sourced{CredentialsProvider: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")}
	network := &recorder{kept: map[string]json.RawMessage{}}
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", Credentials: creds, HTTPClient: network})
	for _, c := range []struct {
		attempts int
		compares bool
	}{{3, true}, {3, false}, {5, true}, {5, false}} {
		creds.asked = 0
		s := New(client, "records", func(o *Options) { o.Transport, o.Attempts = TransportDirect, c.attempts })
		if compares := creds.asked > 0; compares != c.compares {
			t.Errorf("Attempts %d: New compares requests: %t; want %t", c.attempts, compares, c.compares)
		}
		sdk := New(client, "records", func(o *Options) { o.Transport, o.Attempts = TransportSDK, c.attempts })
		var requests [][]sent
		for _, s := range []*Store{sdk, s} {
			if _, err := s.Acquire(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			requests = append(requests, network.take(t))
		}
		sameRequests(t, "acquire", requests[0], requests[1], false)
	}
}
