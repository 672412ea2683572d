package lambdaidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ruled makes every answer have the given outcome.
func ruled(outcome lambdaidem.Outcome) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) {
		o.AnonymousCallers = true
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return outcome }
	}
}

// An outcome rule drops the writes of an answer which tells the client that the request succeeded.
// The client must not get that answer.
func TestE1_SuccessNeverGoesOutWithoutItsWrites(t *testing.T) {
	guards := map[string]struct {
		method string
		opt    func(*lambdaidem.Options)
	}{
		"locked":      {http.MethodPost, func(*lambdaidem.Options) {}},
		"held":        {http.MethodPost, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }},
		"optimistic":  {http.MethodPost, optimistic},
		"failed open": {http.MethodPost, func(o *lambdaidem.Options) { o.FailOpen = true }},
		"unguarded":   {http.MethodPut, func(*lambdaidem.Options) {}},
	}
	for outcome, state := range map[lambdaidem.Outcome]lambdaidem.State{
		"":                          lambdaidem.InProgress,
		"suceeded":                  lambdaidem.InProgress,
		lambdaidem.OutcomeUncertain: lambdaidem.InProgress,
		lambdaidem.OutcomeReleased:  lambdaidem.Released,
		lambdaidem.OutcomeFailed:    lambdaidem.Released,
	} {
		for guard, c := range guards {
			for _, status := range []int{200, 201, 302, 399} {
				name := fmt.Sprintf("%q, %s, %d", outcome, guard, status)
				want := state
				if outcome == lambdaidem.OutcomeFailed && guard == "held" {
					want = lambdaidem.InProgress // there may have been outside calls before
				}
				check := func(t *testing.T, r *rig, l *ledger, got int, body string) {
					t.Helper()
					if got < 500 || !strings.Contains(body, `"code":"idempotency_`) || strings.Contains(body, "created") {
						t.Errorf("the answer is %d %s", got, body)
					}
					l.wantDone(t)
					if guard == "locked" || guard == "held" {
						if rec := r.record(t); rec.State != want {
							t.Errorf("the record is %s; want %s", rec.State, want)
						}
					}
					if e := r.seen.last(t); e.Err == nil || !strings.Contains(e.Err.Error(), fmt.Sprintf("%q", outcome)) {
						t.Errorf("the last event is %+v", e)
					}
				}
				t.Run(name+", event", func(t *testing.T) {
					r, l := withLedger(enlisting(func(context.Context) (response, error) {
						return response{StatusCode: status, Body: "created"}, nil
					}), c.opt, ruled(outcome))
					if guard == "failed open" {
						r.store.fail(acquire, refused(lambdaidem.ReasonTimeout))
					}
					in := first()
					in.RequestContext.HTTP.Method = c.method
					out, err := r.handler(t.Context(), in)
					if err != nil {
						t.Fatal(err)
					}
					check(t, r, l, out.StatusCode, out.Body)
				})
				t.Run(name+", net/http", func(t *testing.T) {
					r, l := withLedger(nil, c.opt, ruled(outcome))
					if guard == "failed open" {
						r.store.fail(acquire, refused(lambdaidem.ReasonTimeout))
					}
					req := httptest.NewRequestWithContext(t.Context(), c.method, "/payments", strings.NewReader("{}"))
					req.Header.Set("Idempotency-Key", "k")
					w := httptest.NewRecorder()
					r.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						enlist(req.Context(), "write")
						w.WriteHeader(status)
						_, _ = io.WriteString(w, "created")
					})).ServeHTTP(w, req)
					check(t, r, l, w.Code, w.Body.String())
				})
			}
		}
	}
}

// These answers are sent in spite of dropped writes: an answer that isn't a success, and one
// without writes.
func TestE1_OutcomeRuleDropsTheWritesOfOtherAnswers(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		for _, outcome := range []lambdaidem.Outcome{"", lambdaidem.OutcomeReleased, lambdaidem.OutcomeUncertain, lambdaidem.OutcomeFailed} {
			for name, h := range map[string]handler{
				"400":            enlisting(func(context.Context) (response, error) { return response{StatusCode: 400, Body: "own"}, nil }),
				"199":            enlisting(func(context.Context) (response, error) { return response{StatusCode: 199, Body: "own"}, nil }),
				"without writes": func(context.Context, request) (response, error) { return response{StatusCode: 201, Body: "own"}, nil },
			} {
				t.Run(fmt.Sprintf("%s %q %s", method, outcome, name), func(t *testing.T) {
					r, l := withLedger(h, ruled(outcome))
					in := first()
					in.RequestContext.HTTP.Method = method
					if out := r.send(t, in); out.Body != "own" {
						t.Errorf("%+v", out)
					}
					l.wantDone(t)
				})
			}
		}
	}
}

// If the handler asked for it, the writes of an answer that counts as failed are committed,
// whatever its status.
func TestE1_SuccessThatCountsAsFailedGoesOutWithItsWrites(t *testing.T) {
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "write").whenFailed = true
		return created(ctx)
	}, ruled(lambdaidem.OutcomeFailed))
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("%+v", out)
	}
	l.wantDone(t, "write")
	if rec := r.record(t); rec.Result.Outcome != lambdaidem.OutcomeFailed {
		t.Errorf("%+v", rec)
	}
}

// The answer that the user gives in place of a rejected transaction hasn't lost its writes, because
// the user knew that there are none.
func TestE2_AnswerToARejectionGoesOutByTheRule(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		r, l := withLedger(enlisting(created), func(o *lambdaidem.Options) {
			o.Outcome = func(resp *lambdaidem.Response) lambdaidem.Outcome {
				if resp.Status == 201 {
					return lambdaidem.OutcomeSucceeded
				}
				return lambdaidem.OutcomeReleased
			}
		})
		r.store.fail(commit, rejects(lambdaidem.Answer(response{StatusCode: 208, Body: "already"})))
		in := first()
		in.RequestContext.HTTP.Method = method
		if out := r.send(t, in); out.StatusCode != 208 {
			t.Errorf("%s: %+v", method, out)
		}
		l.wantDone(t)
		if !slices.Contains(r.seen.kinds(), lambdaidem.EventReleased) {
			t.Errorf("%s: events %v", method, r.seen.kinds())
		}
	}
}
