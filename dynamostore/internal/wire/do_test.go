package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// With endpoint discovery, the SDK asks for DynamoDB's endpoints in a separate goroutine, with the
// context of the call that needs them. That request must not count as an attempt of the call.
func TestARequestForEndpointsIsOutsideTheCall(t *testing.T) {
	discovered := make(chan struct{})
	const endpoints, item = `{"Endpoints":[{"Address":"found.test","CachePeriodInMinutes":1}]}`, `{"Item":{"id":{"S":"1"}}}`
	users := dynamodb.New(dynamodb.Options{
		Region:            "eu-west-1",
		Credentials:       aws.AnonymousCredentials{},
		EndpointDiscovery: dynamodb.EndpointDiscoveryOptions{EnableEndpointDiscovery: aws.EndpointDiscoveryEnabled},
		HTTPClient: doFunc(func(r *http.Request) (*http.Response, error) {
			answer := endpoints
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetItem") {
				answer = item
				select {
				case <-discovered:
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		}),
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			if stack.ID() != "DescribeEndpoints" {
				return nil
			}
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("users", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				defer close(discovered)
				return next.HandleInitialize(ctx, in)
			}), middleware.Before)
		}},
	})
	c := New(users, Options{Attempts: 1, AttemptTimeout: 10 * time.Second, Random: func() float64 { return 0 }})
	var got answers
	fate, err := c.Do(t.Context(), &Request{Operation: GetItem, Body: []byte(`{"TableName":"t","Key":{"id":{"S":"1"}}}`), Answer: &got})
	if fate != Applied || err != nil {
		t.Errorf("fate %v, %v", fate, err)
	}
	if bodies := strings.Join(got.bodies, ", "); bodies != item {
		t.Errorf("decoded %s; want %s", bodies, item)
	}
}

// answers records the bodies that it is asked to decode.
type answers struct {
	mu     sync.Mutex
	bodies []string
}

func (a *answers) Success(body string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bodies = append(a.bodies, body)
	return true
}
func (*answers) Refusal(string) bool { return false }
