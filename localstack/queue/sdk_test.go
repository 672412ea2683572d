package queue_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	awshttp "github.com/aws/smithy-go/transport/http"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString("after the last test: " + err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// direct hands the SDK's requests to a handler in the same synctest bubble,
// where there are no sockets.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	d.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// newClient is the SDK's client, without retries: an error is a test's result.
func newClient(endpoint string, transport sqs.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   transport,
		Retryer:      aws.NopRetryer{},
	})
}

// bubble runs a test against a new service, in which time passes by itself.
func bubble(t *testing.T, options queue.Options, test func(t *testing.T, s *queue.Service, client *sqs.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		service := queue.New(options)
		defer func() {
			if err := service.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		test(t, service, newClient("http://sqs.local", direct{service}))
	})
}

// refusal is what a client sees of an error: its code, and its HTTP status.
func refusal(err error) string {
	if err == nil {
		return "ok"
	}
	var response *awshttp.ResponseError
	var coded interface{ ErrorCode() string }
	if !errors.As(err, &response) || !errors.As(err, &coded) {
		return "not an API error"
	}
	return coded.ErrorCode() + " " + http.StatusText(response.HTTPStatusCode())
}

// code is the code of an error of the Go API.
func code(err error) string {
	var refused *queue.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func create(t *testing.T, s *queue.Service, name string, attributes map[string]string) *queue.Queue {
	t.Helper()
	q, err := s.CreateQueue(name, attributes)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// createFIFO deduplicates by the content.
func createFIFO(t *testing.T, s *queue.Service, attributes map[string]string) *queue.Queue {
	t.Helper()
	all := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
	for name, value := range attributes {
		all[name] = value
	}
	return create(t, s, "orders.fifo", all)
}

func send(t *testing.T, q *queue.Queue, o queue.Outgoing) queue.Sent {
	t.Helper()
	sent, err := q.Send(o)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func sendAll(t *testing.T, q *queue.Queue, group string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		send(t, q, queue.Outgoing{Body: body, GroupID: group})
	}
}

// receive doesn't wait.
func receive(t *testing.T, q *queue.Queue, most int) []queue.Message {
	t.Helper()
	messages, err := q.Receive(context.Background(), queue.ReceiveOptions{Max: most, Wait: new(time.Duration)}) //nolint:usetesting // some tests have ended theirs
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func bodies(messages []queue.Message) string {
	var all string
	for _, m := range messages {
		all += m.Body + " "
	}
	return all
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
