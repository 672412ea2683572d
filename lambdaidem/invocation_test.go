package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// inLambda returns the context of an invocation with the given request id.
func inLambda(ctx context.Context, requestID string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: requestID})
}

// From the claim on, a record names the invocation that holds it. Every takeover replaces the name,
// and a completion keeps it.
func TestL9_ARecordNamesTheInvocationThatHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		inside := func(want string) handler {
			return func(context.Context, request) (response, error) {
				if got := r.record(t).Invocation; got != want {
					t.Errorf("while its handler runs, the record names the invocation %q, want %q", got, want)
				}
				return response{StatusCode: 201}, lambdaidem.Uncertain(errors.New("no reply"))
			}
		}
		r = newRig(inside("invocation-1"))
		if _, err := r.handler(inLambda(t.Context(), "invocation-1"), first()); err == nil {
			t.Fatal("an uncertain error was not returned")
		}
		if got := r.record(t); got.Invocation != "invocation-1" || got.LastFailure != "" {
			t.Errorf("after an uncertain end the record says %q, %q", got.Invocation, got.LastFailure)
		}
		time.Sleep(5 * time.Minute) // its lease is over
		r.handler = r.guarded(nil)
		r.sendCtx(inLambda(t.Context(), "invocation-2"), t, first())
		if got := r.record(t); got.State != lambdaidem.Completed || got.Invocation != "invocation-2" {
			t.Errorf("after a takeover the record is %s by the invocation %q", got.State, got.Invocation)
		}
		r.sendCtx(inLambda(t.Context(), "invocation-3"), t, first())
		if got := r.record(t).Invocation; got != "invocation-2" {
			t.Errorf("a replay made the record name the invocation %q", got)
		}
	})
}

// Outside Lambda, no invocation is named. The length of a request id is limited.
func TestL9_AnInvocationIsBounded(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "8f5a\xff": "8f5a", strings.Repeat("x", 129): strings.Repeat("x", 128), strings.Repeat("x", 127) + "é": strings.Repeat("x", 127),
	} {
		r := newRig(nil)
		ctx := t.Context()
		if id != "" {
			ctx = inLambda(ctx, id)
		}
		r.sendCtx(ctx, t, first())
		if got := r.record(t).Invocation; got != want {
			t.Errorf("of the request id %q the record keeps %q, want %q", id, got, want)
		}
	}
}

type declinedError[T any] struct{ card string }

func (e *declinedError[T]) Error() string { return "declined: " + e.card }

// A released record names the failure by its code or its Go type, and never contains any of its
// text.
func TestL9_AReleasedRecordNamesItsLastFailure(t *testing.T) {
	const personal = "4111 1111 1111 1111"
	long := lambdaidem.Code(strings.Repeat("é", 100))
	for name, c := range map[string]struct {
		end  func() (response, error)
		want string
	}{
		"a response":            {with(503), "http_503"},
		"a status that is none": {with(99), "http_99"},
		"a code":                {func() (response, error) { return response{}, lambdaidem.Reject(503, "bank_closed", personal) }, "bank_closed"},
		"a code, wrapped": {func() (response, error) {
			return response{}, fmt.Errorf("%s: %w", personal, lambdaidem.Reject(503, "bank_closed", ""))
		}, "bank_closed"},
		"a bare code": {func() (response, error) { return response{}, lambdaidem.ErrWriteInvalid }, "idempotency_write_invalid"},
		"a type":      {func() (response, error) { return response{}, &declinedError[int]{personal} }, "lambdaidem_test.declinedError[int]"},
		"a type, wrapped": {func() (response, error) {
			return response{}, fmt.Errorf("charge %s: %w", personal, &net.OpError{Op: "dial"})
		}, "net.OpError"},
		"a type, marked": {func() (response, error) { return response{}, lambdaidem.Retryable(&net.OpError{Op: "dial"}) }, "net.OpError"},
		"a type, joined": {func() (response, error) {
			return response{}, errors.Join(fmt.Errorf("%w, %w", &net.OpError{Op: "dial"}, errors.New(personal)))
		}, "net.OpError"},
		"no type":         {func() (response, error) { return response{}, errors.New(personal) }, "errors.errorString"},
		"a panic":         {func() (response, error) { panic(personal) }, "panic"},
		"a code too long": {func() (response, error) { return response{}, lambdaidem.Reject(503, long, "") }, string(long)[:128]},
		"Go type":         {func() (response, error) { return response{}, context.DeadlineExceeded }, "context.deadlineExceededError"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return c.end() })
			func() {
				defer func() { _ = recover() }()
				_, _ = r.handler(inLambda(t.Context(), "invocation-1"), first())
			}()
			got := r.record(t)
			if got.State != lambdaidem.Released || got.LastFailure != c.want || got.Invocation != "invocation-1" {
				t.Errorf("the record is %s by the failure %q of the invocation %q; want the failure %q", got.State, got.LastFailure, got.Invocation, c.want)
			}
			if !utf8.ValidString(got.LastFailure) {
				t.Error("the failure is not UTF-8")
			}
			r.handler = r.guarded(nil)
			r.send(t, first())
			if got := r.record(t); got.LastFailure != "" || got.Invocation != "" {
				t.Errorf("after the next attempt, the record still says %q, %q", got.LastFailure, got.Invocation)
			}
		})
	}
}

// The record of a message names its failure in the same way.
func TestL9_AReleasedMessageNamesItsLastFailure(t *testing.T) {
	for want, fail := range map[string]func() error{
		"panic":       func() error { panic("4111") },
		"net.OpError": func() error { return &net.OpError{Op: "dial", Err: errBroken} },
	} {
		store := newFaulty()
		g := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
		h := g.SQS(func(context.Context, events.SQSMessage) error { return fail() })
		if _, err := h(inLambda(t.Context(), "invocation-1"), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q"}}}); err != nil {
			t.Fatal(err)
		}
		rec, err := store.Store.Get(t.Context(), store.allClaims()[0].ID, time.Now())
		if err != nil || rec.State != lambdaidem.Released || rec.LastFailure != want || rec.Invocation != "invocation-1" {
			t.Errorf("%v: the record is %+v; want the failure %q", err, rec, want)
		}
	}
}

// The guard refuses a call inside the handler. The record of the handler must not name the refusal
// as if the client's own request had been refused.
func TestL9_TheLastFailureTellsARefusedInnerCall(t *testing.T) {
	for name, c := range map[string]struct {
		inner func(context.Context) error
		want  string
	}{
		"refused by the guard": {func(context.Context) error { return nil }, "inner_idempotency_payload_mismatch"},
		"failed by itself":     {func(context.Context) error { return lambdaidem.Reject(503, "bank_closed", "") }, "bank_closed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			call := func(ctx context.Context, payload int) error {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "charge", Key: "order-1", Payload: payload},
					func(ctx context.Context) (int, error) { return 1, c.inner(ctx) })
				return err
			}
			_ = call(t.Context(), 1)
			r.store.forgetClaims() // so that r.record returns the record of the handler
			r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, call(ctx, 2) })
			_, _ = r.handler(t.Context(), first())
			if got := r.record(t); got.LastFailure != c.want {
				t.Errorf("the record is %s by the failure %q; want %q", got.State, got.LastFailure, c.want)
			}
		})
	}
}

// The inner record has no answer, because it could not be encoded. The record of the handler must not
// name that as if its own answer were lost.
func TestL9_TheLastFailureTellsAnInnerAnswerThatIsGone(t *testing.T) {
	r := newRig(nil)
	unstorable := lambdaidem.Call{Operation: "charge", Key: "order-1"}
	_, _ = lambdaidem.Do(t.Context(), r.guard, unstorable, func(context.Context) (any, error) { return func() {}, nil })
	r.store.forgetClaims()
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, unstorable, func(context.Context) (any, error) { return 1, nil })
		return response{}, err
	})
	_, _ = r.handler(t.Context(), first())
	if rec := r.record(t); rec.LastFailure != "inner_idempotency_answer_unavailable" {
		t.Errorf("the record is %s by the failure %q", rec.State, rec.LastFailure)
	}
}

// The charge is being made elsewhere, so the guard refuses it, and the handler rejects the request. The
// client gets 503, because the rejection is not final. The record must not say that the attempt was
// released because of the rejection: the charge succeeds.
func TestL9_TheLastFailureTellsWhyAnAnswerWasNotStored(t *testing.T) {
	for name, answer := range map[string]func() (response, error){
		"Reject": func() (response, error) {
			return response{}, lambdaidem.Reject(http.StatusPaymentRequired, "card_declined", "")
		},
		"response": func() (response, error) { return response{StatusCode: http.StatusPaymentRequired}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				_, _ = lambdaidem.Do(context.WithoutCancel(t.Context()), r.guard, charge, func(context.Context) (int, error) {
					close(began)
					<-goOn
					return 1, nil
				})
			}()
			<-began
			r.store.forgetClaims()
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				if r.charged(ctx) == nil {
					t.Error("the charge was not refused")
				}
				return answer()
			})
			out := r.send(t, first())
			close(goOn)
			<-done
			rec := r.record(t)
			if out.StatusCode != http.StatusServiceUnavailable || rec.LastFailure != "inner_refused" {
				t.Errorf("the client is told %d, the record is %s by the failure %q", out.StatusCode, rec.State, rec.LastFailure)
			}
		})
	}
}
