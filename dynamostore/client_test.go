package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The store's own client keeps the options of the user's client.
func TestNewKeepsTheClientsOptions(t *testing.T) {
	var header, host string
	client, _ := inMemory(func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
		header, host = r.Header.Get("X-Users-Own"), r.URL.Host
		return answer(200, `{}`), nil
	})
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Users-Own", "kept"))
		o.RetryMaxAttempts = 7
	})
	if _, err := New(client, "test").Get(t.Context(), claim.ID, now); err != nil {
		t.Fatal(err)
	}
	if header != "kept" || host != "dynamodb.test" {
		t.Errorf("the user's middleware set %q on a request to %q", header, host)
	}
	if n := len(client.Options().APIOptions); n != 1 {
		t.Errorf("the user's client has %d APIOptions; want its own 1", n)
	}
}

func TestAttemptsAreThoseOfTheOptions(t *testing.T) {
	client, w := inMemory()
	if _, err := New(client, "test", quick, func(o *Options) { o.Attempts = 5 }).Acquire(t.Context(), claim); err == nil || w.trips() != 5 {
		t.Errorf("%d attempts, %v; want 5 and an error", w.trips(), err)
	}
}

// The number of attempts that the user's client allows does not matter: Options.Attempts does.
func TestAttemptsAreNotTheClients(t *testing.T) {
	for _, users := range []int{1, 7} {
		client, w := inMemory()
		client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.RetryMaxAttempts = users })
		if _, err := New(client, "test", quick).Acquire(t.Context(), claim); err == nil || w.trips() != 3 {
			t.Errorf("a client with %d attempts: %d attempts, %v; want the default 3 and an error", users, w.trips(), err)
		}
	}
}

// The endpoint rules run again as soon as a parameter changes, such as the account in account-based
// endpoints.
func TestEndpointsFollowTheAccount(t *testing.T) {
	var hosts []string
	seen := func(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
		hosts = append(hosts, r.URL.Host)
		return answer(200, `{}`), nil
	}
	var account atomic.Value
	client := dynamodb.New(dynamodb.Options{
		Region:                "eu-west-1",
		HTTPClient:            &faultyWire{faults: []fault{seen, seen, seen}, next: unreachable{}},
		AccountIDEndpointMode: aws.AccountIDEndpointModePreferred,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", AccountID: account.Load().(string)}, nil
		}),
	})
	s := New(client, "test")
	for _, id := range []string{"111111111111", "111111111111", "222222222222"} {
		account.Store(id)
		if _, err := s.Get(t.Context(), claim.ID, now); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"111111111111.ddb.eu-west-1.amazonaws.com", "111111111111.ddb.eu-west-1.amazonaws.com", "222222222222.ddb.eu-west-1.amazonaws.com"}
	for i := range want {
		if hosts[i] != want[i] {
			t.Errorf("request %d went to %s; want %s", i+1, hosts[i], want[i])
		}
	}
}

func TestAUsersEndpointResolverIsAskedEachTime(t *testing.T) {
	own := &usersResolver{}
	client, _ := inMemory(succeed, succeed)
	s := New(dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.EndpointResolverV2 = own }), "test")
	for range 2 {
		if _, err := s.Get(t.Context(), claim.ID, now); err != nil {
			t.Fatal(err)
		}
	}
	if own.asked != 2 {
		t.Errorf("asked %d times; want 2", own.asked)
	}
}

type usersResolver struct {
	asked    int
	failures int // the number of first calls that fail
}

var errNoEndpoint = errors.New("no endpoint")

func (r *usersResolver) ResolveEndpoint(context.Context, dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	r.asked++
	if r.asked <= r.failures {
		return smithyendpoints.Endpoint{}, errNoEndpoint
	}
	return smithyendpoints.Endpoint{URI: url.URL{Scheme: "http", Host: "users.test"}}, nil
}

// If the user's client has removed a middleware that the store needs to judge attempts, every call
// returns an error that names the middleware, and sends nothing.
func TestX5_AClientWithoutTheSDKsMiddlewareIsNamed(t *testing.T) {
	for _, missing := range []string{"Retry", "GetIdentity"} {
		t.Run(missing, func(t *testing.T) {
			client, w := inMemory(succeed)
			s := New(withAPIOption(client, func(stack *middleware.Stack) error {
				_, err := stack.Finalize.Remove(missing)
				return err
			}), "test")
			_, err := s.Acquire(t.Context(), claim)
			wantStoreError(t, err, opAcquire, lambdaidem.ReasonUnknown, true)
			const says = "one of the APIOptions of the dynamodb.Client took the SDK's %q from its middleware, and the store needs it; give dynamostore.New a client that has it"
			if want := fmt.Sprintf(says, missing); !strings.Contains(err.Error(), want) {
				t.Errorf("error is %q; want it to say %q", err, want)
			}
			if w.trips() != 0 {
				t.Errorf("%d attempts; want none", w.trips())
			}
			problems, ok := errors.AsType[TableProblems](s.CheckTable(t.Context()))
			if !ok || problems[0].Code != CheckFailed || !strings.Contains(problems[0].Detail, missing) {
				t.Errorf("CheckTable says %v; want %s, and what is missing", problems, CheckFailed)
			}
		})
	}
}

// An error is a permission problem only if it occurred while the SDK was getting credentials.
func TestX5_AUsersMiddlewareThatFailsIsNotAMatterOfPermission(t *testing.T) {
	broken := errors.New("the user's middleware is broken")
	for name, option := range map[string]func(*middleware.Stack) error{
		"while the call is built": func(*middleware.Stack) error { return broken },
		"before the credentials": func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("users", func(
				context.Context, middleware.InitializeInput, middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				return middleware.InitializeOutput{}, middleware.Metadata{}, broken
			}), middleware.Before)
		},
		"after the credentials": func(stack *middleware.Stack) error {
			return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("users", func(
				context.Context, middleware.FinalizeInput, middleware.FinalizeHandler,
			) (middleware.FinalizeOutput, middleware.Metadata, error) {
				return middleware.FinalizeOutput{}, middleware.Metadata{}, broken
			}), "Signing", middleware.Before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := inMemory(succeed)
			_, err := New(withAPIOption(client, option), "test", quick).Acquire(t.Context(), claim)
			wantStoreError(t, err, opAcquire, lambdaidem.ReasonUnknown, true)
			if !errors.Is(err, broken) {
				t.Errorf("error is %v; want it to be the middleware's", err)
			}
		})
	}
}

func withAPIOption(client *dynamodb.Client, option func(*middleware.Stack) error) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, option) })
}
