package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

func TestWaitsAreJitteredAndCapped(t *testing.T) {
	for _, c := range []struct {
		attempt int
		random  float64
		want    time.Duration
	}{
		{0, 0.5, 50 * time.Millisecond},
		{1, 0, 0},
		{1, 0.5, 50 * time.Millisecond},
		{2, 0.5, 100 * time.Millisecond},
		{3, 0.5, 150 * time.Millisecond}, // BackoffMax
		{20, 0.5, 150 * time.Millisecond},
	} {
		o := Options{BackoffBase: 100 * time.Millisecond, BackoffMax: 300 * time.Millisecond, Random: func() float64 { return c.random }}
		if got := o.backoff(c.attempt); got != c.want {
			t.Errorf("wait after attempt %d with %v is %v; want %v", c.attempt, c.random, got, c.want)
		}
	}
}

// With a defaults mode, the SDK copies a BuildableClient, and the copy opens connections of its
// own.
func TestNewSharesTheClientsConnections(t *testing.T) {
	users := awshttp.NewBuildableClient()
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", HTTPClient: users, DefaultsMode: aws.DefaultsModeInRegion})
	if got, ok := New(client, Options{}).SDK().Options().HTTPClient.(*HTTP); !ok || got.users != client.Options().HTTPClient {
		t.Error("the store has another HTTP client than the client that it was given")
	}
}

// The cache compares every parameter of the endpoint rules, including those of a later SDK.
func TestEndpointsFollowEveryParameter(t *testing.T) {
	fields := reflect.TypeFor[dynamodb.EndpointParameters]()
	for i := range fields.NumField() {
		var none, one, two, equal dynamodb.EndpointParameters
		for value, p := range map[string]*dynamodb.EndpointParameters{"one": &one, "two": &two} {
			switch f := reflect.ValueOf(p).Elem().Field(i).Addr().Interface().(type) {
			case **string:
				*f = aws.String(value)
			case **bool:
				*f = aws.Bool(value == "one")
			case *[]string:
				*f = []string{value}
			default:
				t.Fatalf("%s is a %T: teach this test to set it", fields.Field(i).Name, f)
			}
		}
		equal = one
		if sameParameters(&none, &one) || sameParameters(&one, &none) || sameParameters(&one, &two) || !sameParameters(&one, &equal) {
			t.Errorf("%s doesn't count", fields.Field(i).Name)
		}
	}
}

// The rules run once for equal parameters. An error is not cached.
func TestEndpointRulesAreRemembered(t *testing.T) {
	rules := &usersResolver{failures: 1}
	r := &cachingResolver{rules: rules}
	for i, want := range []struct {
		region string
		asked  int
		err    error
	}{{"eu-west-1", 1, errNoEndpoint}, {"eu-west-1", 2, nil}, {"eu-west-1", 2, nil}, {"us-east-1", 3, nil}, {"us-east-1", 3, nil}} {
		got, err := r.ResolveEndpoint(t.Context(), dynamodb.EndpointParameters{Region: aws.String(want.region)})
		if !errors.Is(err, want.err) || rules.asked != want.asked || err == nil && got.URI.Host != "users.test" {
			t.Errorf("call %d: %v, %v, rules asked %d times; want %v and %d times", i+1, got, err, rules.asked, want.err, want.asked)
		}
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

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
