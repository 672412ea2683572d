package dynamostore

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// faultyWire is an HTTP client that applies one fault to each request, in order. Once the faults
// are used up, requests pass.
type faultyWire struct {
	next dynamodb.HTTPClient

	mu      sync.Mutex
	faults  []fault
	sent    []string           // the operation of each attempt
	written []string           // the body of each attempt
	later   map[string][]fault // the faults for the next requests of an operation
}

type fault func(*http.Request, dynamodb.HTTPClient) (*http.Response, error)

func (w *faultyWire) Do(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	f := pass
	if len(w.faults) > 0 {
		f, w.faults = w.faults[0], w.faults[1:]
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if of := w.later[operation]; len(of) > 0 {
		f, w.later[operation] = of[0], of[1:]
	}
	w.sent = append(w.sent, operation)
	w.written = append(w.written, bodyOf(r))
	w.mu.Unlock()
	return f(r, w.next)
}

// bodyOf returns the body of a request, which can then be read again.
func bodyOf(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	setBody(r, string(body))
	return string(body)
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
}

// after sets the faults for the next requests of an operation.
func (w *faultyWire) after(operation string, faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.later == nil {
		w.later = map[string][]fault{}
	}
	w.later[operation] = append(w.later[operation], faults...)
}

// bodies returns the bodies of all requests of an operation, in order.
func (w *faultyWire) bodies(operation string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var of []string
	for i, op := range w.sent {
		if op == operation {
			of = append(of, w.written[i])
		}
	}
	return of
}

// trips returns the number of attempts.
func (w *faultyWire) trips() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

func pass(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) { return next.Do(r) }

func loseRequest(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

func loseReply(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	if err := deliver(r, next); err != nil {
		return nil, err
	}
	return loseRequest(r, next)
}

// refuseConnection fails like net/http when nothing listens on the port.
func refuseConnection(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	if hooks := httptrace.ContextClientTrace(r.Context()); hooks != nil && hooks.GetConn != nil {
		hooks.GetConn("dynamodb.test:443")
	}
	return failDial(r, next)
}

// failDial fails like an HTTP client that calls no hooks of net/http/httptrace.
func failDial(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// loseReplyAndFailDial is like an HTTP client that retries by itself. It delivers the request,
// loses the reply, and then can't connect.
func loseReplyAndFailDial(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	hooks := httptrace.ContextClientTrace(r.Context())
	hooks.GetConn("dynamodb.test:443")
	hooks.GotConn(httptrace.GotConnInfo{})
	if err := deliver(r, next); err != nil {
		return nil, err
	}
	return refuseConnection(r, next)
}

func answer500AfterWrite(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	if err := deliver(r, next); err != nil {
		return nil, err
	}
	return answer(500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"internal"}`), nil
}

func cutAnswerShort(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	if err := deliver(r, next); err != nil {
		return nil, err
	}
	return answer(200, `{"Attributes":{"id":{"S":"ide`), nil
}

// hang returns when the request's context ends.
func hang(r *http.Request, _ dynamodb.HTTPClient) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func refuseAs(code string) fault { return fail(400, code, "refused by the test") }

// fail returns a fault that responds with an error. The request has no effect.
func fail(status int, code, message string) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		return answer(status, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"`+message+`"}`), nil
	}
}

// refuseFor returns a fault that responds that the condition failed on the given item.
func refuseFor(item string) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		return answer(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",`+
			`"Message":"The conditional request failed","Item":`+item+`}`), nil
	}
}

// find returns a fault that responds to a read with the given item.
func find(item string) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		return answer(200, `{"Item":`+item+`}`), nil
	}
}

var (
	throttle = refuseAs("ProvisionedThroughputExceededException")
	conflict = refuseAs("TransactionConflictException")
)

// succeed responds like DynamoDB to a write that returns no item, and to a read that finds none.
func succeed(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
	return answer(200, `{}`), nil
}

// deliver delivers the request and discards the response.
func deliver(r *http.Request, next dynamodb.HTTPClient) error {
	resp, err := next.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func answer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewBufferString(body)),
	}
}

// The names of operations and header fields that tests use.
const (
	opPutItem    = "PutItem"
	opUpdateItem = "UpdateItem"
	opGetItem    = "GetItem"

	fieldTarget     = "X-Amz-Target"
	fieldInvocation = "Amz-Sdk-Invocation-Id"
	fieldTrace      = "X-Amzn-Trace-Id"
	fieldDate       = "X-Amz-Date"
	fieldToken      = "X-Amz-Security-Token"
	fieldSignature  = "Authorization"
	fieldChecksum   = "X-Amz-Crc32"
)

type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }
