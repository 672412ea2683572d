package lambdaidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// After FailOpen, the guard withholds an answer that is not stored exactly if a client of package
// idemclient would not retry after it.
func TestX5_AFailureThatEndsAClientsRetriesIsNotToldUnlessItIsStored(t *testing.T) {
	codes := []lambdaidem.Code{"", "card_declined",
		lambdaidem.ErrAnswerUnavailable, lambdaidem.ErrAnswerUnreadable, lambdaidem.ErrAttemptAbandoned, lambdaidem.ErrBodyUnknown,
		lambdaidem.ErrConditionFailed, lambdaidem.ErrInProgress, lambdaidem.ErrOutcomeUnknown, lambdaidem.ErrOutOfTime,
		lambdaidem.ErrPayloadMismatch, lambdaidem.ErrPermanent, lambdaidem.ErrRecordForeign, lambdaidem.ErrRequestInvalid,
		lambdaidem.ErrStoreUnavailable, lambdaidem.ErrStreaming, lambdaidem.ErrWriteInvalid,
	}
	problem := map[string]string{"Content-Type": "application/problem+json"}
	for status := 400; status < 600; status++ {
		for _, code := range codes {
			checkTold(t, response{StatusCode: status, Headers: problem, Body: fmt.Sprintf(`{"code":%q}`, code)})
		}
		if told := isTold(t, func(context.Context, request) (response, error) {
			return response{}, lambdaidem.Reject(status, "no_funds", "No.")
		}, status, "no_funds"); told != retries(t, response{StatusCode: status}) {
			t.Errorf("Reject with %d: it is told: %v", status, told)
		}
	}
	for _, status := range []int{100, 199, 600, 999} { // the gateway sends 502
		if !isTold(t, func(context.Context, request) (response, error) { return response{StatusCode: status}, nil }, status, "") {
			t.Errorf("%d is not told", status)
		}
	}
}

// A handler passes on the response of another guarded service. The client looks at the code of an
// uncompressed problem document of at most 64 KiB, and never retries after a replay.
func TestX5_AResponseOfAnotherServiceThatEndsAClientsRetries(t *testing.T) {
	const inProgress = `{"code":"idempotency_in_progress"}`
	problem := func(encoding string) map[string]string {
		return map[string]string{"content-type": "application/problem+json; charset=utf-8", "Content-Encoding": encoding}
	}
	for _, out := range []response{
		{StatusCode: 409, Headers: problem(""), Body: inProgress},
		{StatusCode: 409, Headers: problem("gzip"), Body: inProgress},
		{StatusCode: 409, Headers: problem(""), Body: inProgress + strings.Repeat(" ", 64<<10)},
		{StatusCode: 409, Headers: map[string]string{"Content-Type": "application/json"}, Body: inProgress},
		{StatusCode: 429, Headers: map[string]string{"x-idempotency-replayed": "true"}},
		{StatusCode: 429, Headers: map[string]string{"x-idempotency-replayed": "false"}},
	} {
		checkTold(t, out)
	}
}

// checkTold checks that the client is told an answer that can't be stored exactly if it retries
// after this answer.
func checkTold(t *testing.T, out response) {
	t.Helper()
	retried := retries(t, out)
	told := isTold(t, func(context.Context, request) (response, error) { return out, nil }, out.StatusCode, out.Body)
	if told != retried {
		t.Errorf("%d %v %.60s: the client retries: %v; it is told: %v", out.StatusCode, out.Headers, out.Body, retried, told)
	}
}

// isTold sends a request that fails open, and whose answer can't be stored. It reports whether the
// client is told the status, and a body that contains text.
func isTold(t *testing.T, h handler, status int, text string) (told bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(h, failOpen)
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		r.store.failAlways(complete, refused(lambdaidem.ReasonThrottled))
		r.store.failAlways(release, refused(lambdaidem.ReasonThrottled))
		out := r.send(t, first())
		told = out.StatusCode == status && strings.Contains(out.Body, text)
	})
	return told
}

// retries reports whether a client of package idemclient sends a request again after a response.
func retries(t *testing.T, out response) bool {
	t.Helper()
	sent := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	network := roundTrip(func(r *http.Request) (*http.Response, error) {
		if sent++; sent > 1 {
			cancel()
			return nil, errWire
		}
		resp := &http.Response{StatusCode: out.StatusCode, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(out.Body)), Request: r}
		for name, value := range out.Headers {
			resp.Header.Set(name, value)
		}
		return resp, nil
	})
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: idemclient.New(network, []string{"api.example.com"})}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example.com/payments", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
	})
	return sent > 1
}

// After FailOpen or a lost lease, the client is not told an error of the guard that ends its
// retries, such as one about invalid writes, while another attempt carries out the request.
func TestX6_AGuardsErrorThatEndsAClientsRetriesIsWithheld(t *testing.T) {
	invalid := &lambdaidem.Error{Code: lambdaidem.ErrWriteInvalid, Status: http.StatusInternalServerError, Detail: "Two writes to one item."}
	for name, option := range map[string]func(*lambdaidem.Options){"lost lease": quiet, "failed open": failOpen} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(nil, option)
				second := r.later(func(context.Context, request) (response, error) {
					time.Sleep(10 * time.Minute)
					return response{StatusCode: http.StatusCreated}, nil
				})
				done := make(chan struct{})
				send := func() {
					go func() { defer close(done); second.send(t, first()) }()
					synctest.Wait()
				}
				h := r.guarded(enlisting(func(context.Context) (response, error) {
					if name == "lost lease" {
						time.Sleep(2 * time.Minute)
						send()
					}
					return response{StatusCode: http.StatusCreated}, nil
				}))
				if name == "failed open" {
					send()
					l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				}
				l.fail(commit, rejects(invalid))
				out, err := h(t.Context(), first())
				if err != nil {
					t.Fatal(err)
				}
				wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
				<-done
			})
		})
	}
}

// A handler fails open beside a record with another payload. It charges in a step whose result is
// too large to be stored. The client is told not to use a new key.
func TestX5_AStepThatCantBeStoredBesideAnotherPayload(t *testing.T) {
	r := newRig(status(http.StatusCreated), failOpen, tooMuch)
	r.send(t, post("k-1", `{"amount":2}`))
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) { return "0123456789", nil })
		return response{}, err
	})
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	wantNoNewKey(t, r.send(t, post("k-1", `{"amount":3}`)))
}

// An attempt fails open, and its transaction is rejected while an earlier request of the
// transaction may still commit. Then a request with another payload completes the record, so that
// it can't.
func TestX5_AnUnsettledRejectionBesideAnotherPayload(t *testing.T) {
	for name, verdict := range map[string]error{"released": lambdaidem.Retryable(noPayment), "uncertain": lambdaidem.Uncertain(noPayment), "stored": noPayment, "not marked": errWire} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				l.fail(commit, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					r.later(status(http.StatusCreated)).send(t, post("key-1", `{"amount":7}`))
					return unsettled(verdict)(ctx, verb, call)
				})
				wantNoNewKey(t, r.send(t, first()))
			})
		})
	}
}

// A GraphQL service answers 200 to every request, and Options.Outcome reads the body. A client does
// not retry after a 200, so it is not told of a failure while another attempt carries out the
// request.
func TestX5_AFailureWithStatus200IsWithheld(t *testing.T) {
	const noFunds = `{"errors":["no funds"]}`
	for _, outcome := range []lambdaidem.Outcome{lambdaidem.OutcomeFailed, lambdaidem.OutcomeReleased, lambdaidem.OutcomeUncertain} {
		graphQL := func(o *lambdaidem.Options) {
			o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
				if r.Body == noFunds {
					return outcome
				}
				return lambdaidem.DefaultOutcome(r)
			}
		}
		failure := response{StatusCode: 200, Body: noFunds}
		t.Run(string(outcome)+", failed open", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(nil, failOpen, graphQL)
				finish := r.startAnother(t)
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				out := r.later(func(context.Context, request) (response, error) { return failure, nil }).send(t, first())
				finish()
				if out.StatusCode == 200 {
					t.Errorf("the client is told %d %s, and the record is %s", out.StatusCode, out.Body, r.record(t).State)
				}
			})
		})
		t.Run(string(outcome)+", lost lease", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := withLedger(nil, graphQL)
				var finish func()
				out := r.later(func(context.Context, request) (response, error) {
					time.Sleep(2 * time.Minute)
					finish = r.startAnother(t)
					return failure, nil
				}).send(t, first())
				finish()
				if out.StatusCode == 200 {
					t.Errorf("the client is told %d %s, and the record is %s", out.StatusCode, out.Body, r.record(t).State)
				}
			})
		})
	}
}
