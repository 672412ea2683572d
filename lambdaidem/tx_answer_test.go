package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An outcome rule decides about a response. If the rule changes the response, the change is neither
// in the first answer nor in a replay.
func TestR1_OutcomeRuleChangesNoAnswer(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Outcome = func(resp *lambdaidem.Response) lambdaidem.Outcome {
			o := lambdaidem.DefaultOutcome(resp)
			resp.Status, resp.Body = 299, "changed"
			resp.Set("X-Rule", "set")
			for _, values := range resp.Header {
				values[0] = "changed"
			}
			for i := range resp.Cookies {
				resp.Cookies[i] = "changed"
			}
			return o
		}
	})
	answer := events.APIGatewayProxyResponse{StatusCode: 201, Body: "own", Headers: map[string]string{"X-One": "own", "X-Both": "own"},
		MultiValueHeaders: map[string][]string{"X-Many": {"own", "too"}, "X-Both": {"own"}}}
	rest := r.guard.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return answer, nil
	})
	in := events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/p", Body: "{}", Headers: map[string]string{"Idempotency-Key": "k"}}
	for i := range 2 {
		out, err := rest(t.Context(), in)
		delete(out.Headers, mark)
		if got, want := fmt.Sprintf("%+v", out), fmt.Sprintf("%+v", events.APIGatewayProxyResponse{StatusCode: 201, Body: "own", Headers: map[string]string{"X-One": "own", "X-Both": "own"},
			MultiValueHeaders: map[string][]string{"X-Many": {"own", "too"}, "X-Both": {"own"}}}); err != nil || got != want {
			t.Errorf("answer %d is %s, %v; want %s", i, got, err, want)
		}
	}
	h := r.guarded(func(context.Context, request) (response, error) {
		return response{StatusCode: 201, Body: "own", Headers: map[string]string{"X-One": "own"}, Cookies: []string{"own=1"}}, nil
	})
	out, err := h(t.Context(), first())
	again, errAgain := h(t.Context(), first())
	if err = errors.Join(err, errAgain); err != nil {
		t.Fatal(err)
	}
	wantReplay(t, again, out)
	if out.Cookies[0] != "own=1" || out.Headers["X-One"] != "own" {
		t.Errorf("%+v", out)
	}
}

// nilAnswer calls Do with the given type. The transaction is rejected with Answer(nil).
func nilAnswer[T any](t *testing.T) (T, error) {
	t.Helper()
	r, _ := withLedger(nil)
	r.store.fail(commit, rejects(lambdaidem.Answer(nil)))
	return lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "op", Key: "k"}, func(ctx context.Context) (T, error) {
		enlist(ctx, "write")
		var none T
		return none, nil
	})
}

// Answer(nil) means the nil value of the handler's type, if the type has one.
func TestE2_AnswerOfNil(t *testing.T) {
	if v, err := nilAnswer[any](t); v != nil || err != nil {
		t.Errorf("any: %v, %v", v, err)
	}
	if v, err := nilAnswer[fmt.Stringer](t); v != nil || err != nil {
		t.Errorf("an interface: %v, %v", v, err)
	}
	if v, err := nilAnswer[*account](t); v != nil || err != nil {
		t.Errorf("a pointer: %v, %v", v, err)
	}
	if v, err := nilAnswer[[]string](t); v != nil || err != nil {
		t.Errorf("a slice: %v, %v", v, err)
	}
	if v, err := nilAnswer[map[string]int](t); v != nil || err != nil {
		t.Errorf("a map: %v, %v", v, err)
	}
	if _, err := nilAnswer[int](t); err == nil || !strings.Contains(err.Error(), "returns a int") {
		t.Errorf("an int: %v", err)
	}
	if _, err := nilAnswer[struct{}](t); err == nil {
		t.Error("a struct has no nil")
	}
}

type account struct{ ID string }

// The handler that answers in place of a rejected transaction has the context of its call, and can
// no longer enlist writes.
func TestK6_AnswerHandlerKnowsTheCall(t *testing.T) {
	type outerKey struct{}
	for method, guarded := range map[string]bool{http.MethodPost: true, http.MethodPut: false} {
		r, _ := withLedger(nil, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
		var record, key, downstream string
		answered := false
		r.store.fail(commit, rejects(lambdaidem.Answer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			answered = true
			ctx := req.Context()
			if got := lambdaidem.RecordID(ctx); got != record || (got != "") != guarded {
				t.Errorf("%s: the record is %q; want %q", method, got, record)
			}
			if got := lambdaidem.Key(ctx); got != key || (got == "k") != guarded {
				t.Errorf("%s: the key is %q; want %q", method, got, key)
			}
			if got := lambdaidem.DownstreamKey(ctx, "mail"); got != downstream {
				t.Errorf("%s: the downstream key is %q; want %q", method, got, downstream)
			}
			if _, err := lambdaidem.TxOf(ctx); err == nil || !strings.Contains(err.Error(), "has returned") {
				t.Errorf("%s: TxOf: %v", method, err)
			}
			if ctx.Err() != nil || ctx.Value(outerKey{}) != "outer" {
				t.Errorf("%s: the context has ended, %v, or is not the request's", method, ctx.Err())
			}
			w.WriteHeader(208)
		}))))
		h := r.guard.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			ctx := req.Context()
			record, key, downstream = lambdaidem.RecordID(ctx), lambdaidem.Key(ctx), lambdaidem.DownstreamKey(ctx, "mail")
			enlist(ctx, "write")
		}))
		req := httptest.NewRequestWithContext(context.WithValue(t.Context(), outerKey{}, "outer"), method, "/payments", strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != 208 || !answered {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// Without a record, nothing prevents a repeated request from running. So an unguarded transaction
// is tried again only for a short time, not until the invocation ends up to a quarter of an hour
// later.
func TestE1_UnguardedTransactionIsGivenUpSoon(t *testing.T) {
	put := first()
	put.RequestContext.HTTP.Method = http.MethodPut
	for name, f := range map[string]fault{
		"conflict":  refused(lambdaidem.ReasonConflict),
		"throttled": refused(lambdaidem.ReasonThrottled),
		"unknown":   requestLost,
		"hanging":   hangs,
	} {
		for _, deadline := range []time.Duration{0, time.Second, 15 * time.Minute} {
			t.Run(fmt.Sprint(name, " ", deadline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, l := withLedger(enlisting(created))
					r.store.failAlways(commit, f)
					ctx, bound := t.Context(), 2*time.Second
					if deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, deadline)
						defer cancel()
						bound = min(bound, deadline)
					}
					began := time.Now()
					wantProblem(t, r.sendCtx(ctx, t, put), 503, lambdaidem.ErrOutcomeUnknown)
					if took := time.Since(began); took > bound || took < bound/4 {
						t.Errorf("it took %v; want up to %v", took, bound)
					}
					l.wantDone(t)
				})
			})
		}
	}
}
