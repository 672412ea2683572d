package eventsource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	closeLocal()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString("after the last test: " + err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// direct is an HTTP client that passes the SDK's requests directly to a handler, because a
// synctest bubble can't wait for sockets.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	d.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

const (
	head      = "arn:aws:sqs:us-east-1:000000000000:"
	streamARN = "arn:aws:dynamodb:us-east-1:000000000000:table/ledger/stream/local" // as in a template
)

// world is a synctest bubble with queues, a stream, and a function that is a Go func.
type world struct {
	*testing.T
	sqs     *fakeSQS
	stream  *fakeStream
	streams *dynamodbstreams.Client
	log     buffer

	mu       sync.Mutex
	events   []event
	mappings *eventsource.Mappings
}

// event is the event of one invocation.
type event struct {
	at       time.Time
	function string
	payload  string
	Records  []struct {
		MessageID  string            `json:"messageId"`
		Body       string            `json:"body"`
		Attributes map[string]string `json:"attributes"`
		DynamoDB   struct {
			Keys           map[string]struct{ S string }
			SequenceNumber string
		} `json:"dynamodb"`
	}
}

// names returns the bodies of an event's messages, or the keys of its stream records, separated
// by spaces.
func (e event) names() string {
	var names []string
	for _, r := range e.Records {
		names = append(names, r.Body+r.DynamoDB.Keys["id"].S)
	}
	return strings.Join(names, " ")
}

// reporting returns a response that reports the records with these names as failed.
func (e event) reporting(failed ...string) []byte {
	items := []map[string]string{}
	for _, r := range e.Records {
		if slices.Contains(failed, r.Body+r.DynamoDB.Keys["id"].S) {
			items = append(items, map[string]string{"itemIdentifier": r.MessageID + r.DynamoDB.SequenceNumber})
		}
	}
	answer, err := json.Marshal(map[string]any{"batchItemFailures": items})
	if err != nil {
		panic(err)
	}
	return answer
}

func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, sqs: newFakeSQS(), stream: newFakeStream()}
		secret := credentials.NewStaticCredentialsProvider("local", "local", "")
		w.streams = dynamodbstreams.New(dynamodbstreams.Options{
			Region: "us-east-1", BaseEndpoint: aws.String("http://streams.local"), Credentials: secret, HTTPClient: direct{w.stream}, Retryer: aws.NopRetryer{},
		})
		defer func() {
			if w.mappings != nil {
				expect(t, "Close", w.mappings.Close(), nil)
			}
		}()
		test(w)
	})
}

// create creates a queue. Its visibility timeout is 30 seconds unless attributes set another.
func (w *world) create(name string, attributes map[string]string) *fakeQueue {
	return w.sqs.create(name, attributes)
}

// send sends messages, even while the test makes SQS actions fail.
func (w *world) send(q *fakeQueue, group string, bodies ...string) {
	for _, body := range bodies {
		in := &sqs.SendMessageInput{MessageBody: &body}
		if group != "" {
			in.MessageGroupId, in.MessageDeduplicationId = &group, &body
		}
		w.sqs.mu.Lock()
		q.send(in)
		w.sqs.mu.Unlock()
	}
}

// breaks makes the actions for which broken returns true fail. If broken is nil, no action fails.
func (w *world) breaks(broken func(action string) bool) {
	w.sqs.mu.Lock()
	defer w.sqs.mu.Unlock()
	w.sqs.broken = broken
}

// receive receives up to 10 messages from a queue.
func (w *world) receive(q *fakeQueue) []string {
	w.Helper()
	out, err := w.sqs.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.name, MaxNumberOfMessages: 10})
	if err != nil {
		w.Fatal(err)
	}
	var bodies []string
	for _, m := range out.Messages {
		bodies = append(bodies, *m.Body)
	}
	return bodies
}

// options returns Options for one function, Consumer, with these sources. The function records
// each event and then calls handle.
func (w *world) options(handle func(context.Context, event) (emulator.Result, error), sources ...template.Source) eventsource.Options {
	f := &template.Function{LogicalID: "Consumer", Name: "consumer", Timeout: 3 * time.Second}
	for _, s := range sources {
		if s.Name == "" {
			s.Name = "Source"
		}
		f.Sources = append(f.Sources, s)
	}
	return eventsource.Options{
		Template: &template.Template{Functions: []*template.Function{f}, Region: "us-east-1", AccountID: "000000000000"},
		SQS:      w.sqs, Streams: w.streams, Log: &w.log,
		Invoke: func(ctx context.Context, function string, payload []byte) (emulator.Result, error) {
			e := event{at: time.Now(), function: function, payload: string(payload)}
			if err := json.Unmarshal(payload, &e); err != nil {
				return emulator.Result{}, err
			}
			w.mu.Lock()
			w.events = append(w.events, e)
			w.mu.Unlock()
			return handle(ctx, e)
		},
	}
}

func (w *world) start(handle func(context.Context, event) (emulator.Result, error), sources ...template.Source) {
	w.Helper()
	var err error
	if w.mappings, err = eventsource.Start(w.Context(), w.options(handle, sources...)); err != nil {
		w.Fatal(err)
	}
}

// batches returns the names of each event so far.
func (w *world) batches() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		all = append(all, e.names())
	}
	return all
}

func (w *world) event(i int) event {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if i >= len(w.events) {
		w.Fatalf("%d events, want more than %d; the log:\n%s", len(w.events), i, w.log.String())
	}
	return w.events[i]
}

func (w *world) logs(want string) {
	w.Helper()
	if !strings.Contains(w.log.String(), want) {
		w.Errorf("the log lacks %q:\n%s", want, w.log.String())
	}
}

// The following are handlers for the function under test.

func succeeds(context.Context, event) (emulator.Result, error) {
	return emulator.Result{RequestID: "request", Payload: []byte("null")}, nil
}

func fails(context.Context, event) (emulator.Result, error) { return failure("went wrong"), nil }

func failure(message string) emulator.Result {
	return emulator.Result{RequestID: "request", FunctionError: "Unhandled", Payload: fmt.Appendf(nil, `{"errorMessage":%q,"errorType":"errorString"}`, message)}
}

func answer(payload []byte) (emulator.Result, error) {
	return emulator.Result{RequestID: "request", Payload: payload}, nil
}

// failsOn returns a handler that fails whenever one of these records is in its batch.
func failsOn(poison ...string) func(context.Context, event) (emulator.Result, error) {
	return func(ctx context.Context, e event) (emulator.Result, error) {
		for _, name := range strings.Fields(e.names()) {
			if slices.Contains(poison, name) {
				return failure(name), nil
			}
		}
		return succeeds(ctx, e)
	}
}

// reports returns a handler that reports these records as failed whenever they are in its batch.
func reports(poison ...string) func(context.Context, event) (emulator.Result, error) {
	return func(_ context.Context, e event) (emulator.Result, error) { return answer(e.reporting(poison...)) }
}

func expect[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// buffer is a log that can be read while it is being written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
