package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// TestMain checks that no goroutine of the guard is left after the tests (X7).
func TestMain(m *testing.M) {
	if os.Getenv(asFunction) != "" {
		chargeFunction()
	}
	goleak.VerifyTestMain(m)
}

// Most rules are the same for every kind of event, and are tested with HTTP API events.
type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
	handler  = func(context.Context, request) (response, error)
)

// rig is a guarded handler on a store that can be made to fail. It also records the runs and
// events.
type rig struct {
	handler
	guard *lambdaidem.Guard
	store *faulty
	seen  *recorder
	runs  atomic.Int64
}

// newRig guards h. If h is nil, the handler answers 201 with the number of the run.
func newRig(h handler, optFns ...func(*lambdaidem.Options)) *rig {
	r := &rig{store: newFaulty(), seen: &recorder{}}
	all := append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "test", r.seen
	}}, optFns...)
	r.guard = lambdaidem.New(r.store, all...)
	r.handler = r.guarded(h)
	return r
}

// guarded guards another handler with the same guard. Its runs count in runs too.
func (r *rig) guarded(h handler) handler {
	return r.guard.APIGatewayV2(func(ctx context.Context, in request) (response, error) {
		n := r.runs.Add(1)
		if h == nil {
			return response{StatusCode: http.StatusCreated, Body: "run " + strconv.FormatInt(n, 10)}, nil
		}
		return h(ctx, in)
	})
}

// send calls the guarded handler. An error fails the test.
func (r *rig) send(t testing.TB, in request) response {
	t.Helper()
	return r.sendCtx(t.Context(), t, in)
}

func (r *rig) sendCtx(ctx context.Context, t testing.TB, in request) response {
	t.Helper()
	out, err := r.handler(ctx, in)
	if err != nil {
		t.Fatalf("the guarded handler returned the error %v", err)
	}
	return out
}

// record returns the stored record for the one key that the test used.
func (r *rig) record(t testing.TB) lambdaidem.Record {
	t.Helper()
	claims := r.store.allClaims()
	if len(claims) == 0 {
		t.Fatal("the store was never asked for a lease")
	}
	rec, err := r.store.Store.Get(context.WithoutCancel(t.Context()), claims[0].ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// wantState checks the state of the record of the one key that the test used.
func (r *rig) wantState(t testing.TB, want lambdaidem.State) {
	t.Helper()
	if got := r.record(t).State; got != want {
		t.Errorf("the record is %s, want %s", got, want)
	}
}

func (r *rig) wantRuns(t testing.TB, want int64) {
	t.Helper()
	if got := r.runs.Load(); got != want {
		t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

func (r *rig) wantEvents(t testing.TB, want ...lambdaidem.Kind) {
	t.Helper()
	if got := r.seen.kinds(); !slices.Equal(got, want) {
		t.Errorf("the observer saw %v, want %v", got, want)
	}
}

// post returns a request with the given key. An empty key means none.
func post(key, body string) request {
	in := request{RouteKey: "POST /payments", RawPath: "/payments", Headers: map[string]string{"content-type": "application/json"}, Body: body}
	in.RequestContext.HTTP.Method = http.MethodPost
	if key != "" {
		in.Headers["idempotency-key"] = key
	}
	return in
}

// first returns the request that most tests send.
func first() request { return post("key-1", `{"amount":100}`) }

const mark = "X-Idempotency-Replayed"

func replayed(out response) bool { return out.Headers[mark] == "true" }

// wantReplay checks that out is a replay of first.
func wantReplay(t testing.TB, out, first response) {
	t.Helper()
	if !replayed(out) {
		t.Errorf("the answer has no %s: %+v", mark, out)
	}
	out.Headers = maps.Clone(out.Headers)
	delete(out.Headers, mark)
	if !sameAnswer(out, first) {
		t.Errorf("the replay is %+v, want %+v", out, first)
	}
}

// sameAnswer reports whether a gateway would send the same response for both answers.
func sameAnswer(a, b response) bool {
	return a.StatusCode == b.StatusCode && a.Body == b.Body && a.IsBase64Encoded == b.IsBase64Encoded &&
		slices.Equal(a.Cookies, b.Cookies) && maps.EqualFunc(allHeaders(a), allHeaders(b), slices.Equal)
}

func allHeaders(r response) map[string][]string {
	all := make(map[string][]string)
	for name, v := range r.Headers {
		all[name] = []string{v}
	}
	return all // payload format 2.0 has no multiValueHeaders
}

// wantProblem checks one of the guard's own answers, which have the form of RFC 9457.
func wantProblem(t testing.TB, out response, status int, code lambdaidem.Code) {
	t.Helper()
	var doc struct {
		Type, Title, Detail string
		Status              int
		Code                lambdaidem.Code
	}
	if err := json.Unmarshal([]byte(out.Body), &doc); err != nil {
		t.Fatalf("the body %q is no problem document: %v", out.Body, err)
	}
	if out.StatusCode != status || doc.Status != status || doc.Code != code {
		t.Fatalf("the answer is %d %s, want %d %s", out.StatusCode, out.Body, status, code)
	}
	if doc.Type == "" || doc.Title != http.StatusText(status) || doc.Detail == "" || out.Headers["Content-Type"] != "application/problem+json" {
		t.Errorf("the problem document is incomplete: %v %s", out.Headers, out.Body)
	}
}

// retryAfter returns the answer's Retry-After, or 0 without one.
func retryAfter(t testing.TB, out response) time.Duration {
	t.Helper()
	text, ok := out.Headers["Retry-After"]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("Retry-After is %q, want whole seconds", text)
	}
	return time.Duration(n) * time.Second
}

// recorder is an observer that records all events.
type recorder struct {
	mu     sync.Mutex
	events []lambdaidem.Event
}

func (r *recorder) Observe(_ context.Context, e lambdaidem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) all() []lambdaidem.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) kinds() []lambdaidem.Kind {
	var kinds []lambdaidem.Kind
	for _, e := range r.all() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (r *recorder) last(t testing.TB) lambdaidem.Event {
	t.Helper()
	all := r.all()
	if len(all) == 0 {
		t.Fatal("the observer saw nothing")
	}
	return all[len(all)-1]
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// The store's operations.
const (
	acquire  = "acquire"
	complete = "complete"
	release  = "release"
	get      = "get"
	save     = "save_steps"
)

// A fault replaces one store call. The original call is made by call.
type fault func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error)

// faulty is a memstore whose calls can be made to fail.
type faulty struct {
	lambdaidem.Store

	mu     sync.Mutex
	next   map[string][]fault // by operation, for the next calls; nil is no fault
	always map[string]fault   // by operation, for all calls after those
	calls  []string
	claims []lambdaidem.Claim
}

func newFaulty() *faulty {
	return &faulty{Store: memstore.New(), next: map[string][]fault{}, always: map[string]fault{}}
}

// fail sets a fault for each of the next calls of an operation.
func (s *faulty) fail(verb string, faults ...fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[verb] = append(s.next[verb], faults...)
}

// failAlways sets a fault for all further calls of an operation. A nil fault ends that.
func (s *faulty) failAlways(verb string, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[verb] = f
}

// endFaults ends all faults.
func (s *faulty) endFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.next)
	clear(s.always)
}

func (s *faulty) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c == verb {
			n++
		}
	}
	return n
}

func (s *faulty) allCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *faulty) allClaims() []lambdaidem.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.claims)
}

// forgetClaims makes the next claim the first one that allClaims returns.
func (s *faulty) forgetClaims() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = nil
}

func (s *faulty) do(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	s.mu.Lock()
	s.calls = append(s.calls, verb)
	f := s.always[verb]
	if rest := s.next[verb]; len(rest) > 0 {
		f, s.next[verb] = rest[0], rest[1:]
	}
	s.mu.Unlock()
	if f != nil {
		return f(ctx, verb, call)
	}
	return call()
}

func (s *faulty) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	s.mu.Lock()
	s.claims = append(s.claims, c)
	s.mu.Unlock()
	return s.do(ctx, acquire, func() (lambdaidem.Record, error) { return s.Store.Acquire(ctx, c) })
}

func (s *faulty) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	return s.do(ctx, complete, func() (lambdaidem.Record, error) { return s.Store.Complete(ctx, l, r) })
}

func (s *faulty) Release(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return s.do(ctx, release, func() (lambdaidem.Record, error) { return s.Store.Release(ctx, l, now) })
}

func (s *faulty) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	return s.do(ctx, get, func() (lambdaidem.Record, error) { return s.Store.Get(ctx, id, now) })
}

func (s *faulty) SaveSteps(ctx context.Context, l lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	return s.do(ctx, save, func() (lambdaidem.Record, error) { return s.Store.(lambdaidem.StepStore).SaveSteps(ctx, l, steps, now) })
}

// errWire is the cause of the store's errors. Its text is internal, and no client may see it.
var errWire = errors.New("dial tcp 10.0.0.1:8000: table-arn-secret")

// refused is a fault in which the call certainly did not happen.
func refused(reason lambdaidem.Reason) fault {
	return func(_ context.Context, verb string, _ func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: reason, NotApplied: true, Err: errWire}
	}
}

// requestLost is a fault in which the call did not happen, but the guard can't know that.
func requestLost(_ context.Context, verb string, _ func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonUnreachable, Err: errWire}
}

// replyLost is a fault in which the call happened, but the guard can't know that.
func replyLost(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	if _, err := call(); err != nil {
		return lambdaidem.Record{}, fmt.Errorf("under a lost reply: %w", err)
	}
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonTimeout, Err: errWire}
}

// hangs is a fault in which the call does not happen and returns when its context ends.
func hangs(ctx context.Context, verb string, _ func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	<-ctx.Done()
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonTimeout, Err: ctx.Err()}
}

// replyHangs is a fault in which the call happens and its reply never arrives.
func replyHangs(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	if _, err := call(); err != nil {
		return lambdaidem.Record{}, fmt.Errorf("under a hanging reply: %w", err)
	}
	return hangs(ctx, verb, nil)
}

// after returns a fault that runs f after the call has happened and before its reply arrives.
func after(f func()) fault {
	return func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		rec, err := call()
		f()
		return rec, err
	}
}

// wantNoInternals checks that the client's answer contains nothing about the store (X5).
func wantNoInternals(t testing.TB, out response) {
	t.Helper()
	if text := fmt.Sprintf("%+v", out); strings.Contains(text, "secret") || strings.Contains(text, "10.0.0.1") {
		t.Errorf("the client sees internals: %s", text)
	}
}

// ticker is a clock that a test moves by hand.
type ticker struct {
	mu  sync.Mutex
	now time.Time
}

func newTicker() *ticker { return &ticker{now: time.Now()} }

func (c *ticker) option(o *lambdaidem.Options) { o.Clock = c.Now }

func (c *ticker) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *ticker) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// leaseWithoutDeadline is the default length of a lease where the context has no deadline:
// LeaseDuration and MaxSkew, and a millisecond for rounding.
const leaseWithoutDeadline = time.Minute + 2*time.Second + time.Millisecond

// sameRecord compares all fields of two records.
func sameRecord(a, b lambdaidem.Record) bool { return cmp.Equal(a, b) }
