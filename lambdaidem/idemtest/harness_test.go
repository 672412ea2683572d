package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// TestMain checks that no goroutine outlives a test, not even one of a killed attempt.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
	handler  = func(context.Context, request) (response, error)
)

// fake is a testing.TB that records failures instead of reporting them.
type fake struct {
	testing.TB
	failures []string
}

func (f *fake) Helper() {}

func (f *fake) Error(args ...any) { f.failures = append(f.failures, fmt.Sprint(args...)) }

func (f *fake) Errorf(format string, args ...any) { f.Error(fmt.Sprintf(format, args...)) }

type fatal struct{}

func (f *fake) Fatal(args ...any) {
	f.Error(args...)
	panic(fatal{}) // ends the calling function, like Fatal of testing.T
}

func (f *fake) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// failures runs check with a fake test and returns the failures that check reported.
func failures(t *testing.T, check func(*fake)) string {
	t.Helper()
	f := &fake{TB: t}
	func() {
		defer func() {
			if got := recover(); got != nil && got != (fatal{}) {
				panic(got)
			}
		}()
		check(f)
	}()
	return strings.Join(f.failures, "\n")
}

// panics calls f and returns the text of its panic. It fails the test if f doesn't panic.
func panics(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		got := recover()
		if got == nil {
			t.Error("it did not panic")
		}
		text = fmt.Sprint(got)
	}()
	f()
	return ""
}

// rig is a guarded handler on a store whose calls can be made to fail.
type rig struct {
	handler
	guard *lambdaidem.Guard
	store *idemtest.Store
	clock *idemtest.Clock
	seen  idemtest.Recorder
	runs  int
}

// newRig returns a rig whose guard runs h. If h is nil, the handler answers 201 with the number of
// its run.
func newRig(h handler, optFns ...func(*lambdaidem.Options)) *rig {
	r := &rig{store: idemtest.NewStore(nil), clock: idemtest.NewClock()}
	all := append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) { o.Clock, o.Observer = r.clock.Now, &r.seen }}, optFns...)
	r.guard = lambdaidem.New(r.store, all...)
	r.handler = r.guard.APIGatewayV2(func(ctx context.Context, in request) (response, error) {
		r.runs++
		if h != nil {
			return h(ctx, in)
		}
		return response{StatusCode: http.StatusCreated, Body: fmt.Sprint("run ", r.runs)}, nil
	})
	return r
}

// send sends the request that most tests use.
func (r *rig) send(ctx context.Context, t *testing.T) response {
	t.Helper()
	out, err := r.handler(ctx, post())
	if err != nil {
		t.Errorf("the guarded handler returned the error %v", err)
	}
	return out
}

func (r *rig) wantRuns(t *testing.T, want int) {
	t.Helper()
	if r.runs != want {
		t.Errorf("the handler ran %d times, want %d", r.runs, want)
	}
}

// verbs returns the verbs of all calls of the store, in order.
func (r *rig) verbs() []idemtest.Verb {
	var verbs []idemtest.Verb
	for _, c := range r.store.Calls() {
		verbs = append(verbs, c.Verb)
	}
	return verbs
}

func post() request {
	return idemtest.Request{Path: "/payments", Key: "k"}.APIGatewayV2()
}

func wantCode(t *testing.T, out response, status int, code lambdaidem.Code) {
	t.Helper()
	if out.StatusCode != status || !strings.Contains(out.Body, string(code)) {
		t.Errorf("the answer is %d %s, want %d %s", out.StatusCode, out.Body, status, code)
	}
}

var errDeclined = errors.New("declined")
