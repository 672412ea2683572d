package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func status(code int) handler {
	return func(context.Context, request) (response, error) {
		return response{StatusCode: code, Body: fmt.Sprintf("status %d", code)}, nil
	}
}

func hold(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }

func TestX1_StatusDecides(t *testing.T) {
	type want struct {
		state   lambdaidem.State
		outcome lambdaidem.Outcome
	}
	succeeded, failed := want{lambdaidem.Completed, lambdaidem.OutcomeSucceeded}, want{lambdaidem.Completed, lambdaidem.OutcomeFailed}
	released, uncertain := want{lambdaidem.Released, ""}, want{lambdaidem.InProgress, ""}
	for code, rule := range map[int]struct{ rerun, hold want }{
		200: {succeeded, succeeded}, 201: {succeeded, succeeded}, 204: {succeeded, succeeded}, 299: {succeeded, succeeded},
		301: {succeeded, succeeded}, 304: {succeeded, succeeded}, 399: {succeeded, succeeded},
		400: {failed, failed}, 404: {failed, failed}, 409: {failed, failed}, 422: {failed, failed}, 499: {failed, failed},
		408: {released, released}, 425: {released, released}, 429: {released, released},
		500: {released, uncertain}, 503: {released, uncertain}, 599: {released, uncertain},
		// A number that isn't an answer's status reaches the client as the gateway's 5xx.
		0: {released, uncertain}, 100: {released, uncertain}, 199: {released, uncertain}, 600: {released, uncertain}, 700: {released, uncertain}, -1: {released, uncertain},
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			for policy, want := range map[lambdaidem.Policy]want{lambdaidem.Rerun: rule.rerun, lambdaidem.Hold: rule.hold} {
				r := newRig(status(code), func(o *lambdaidem.Options) { o.Policy = policy })
				one := r.send(t, first())
				if one.StatusCode != code || replayed(one) {
					t.Errorf("%s: the first answer is %+v", policy, one)
				}
				rec := r.record(t)
				if rec.State != want.state || rec.Result.Outcome != want.outcome {
					t.Errorf("%s: the record is %s %s, want %+v", policy, rec.State, rec.Result.Outcome, want)
				}
				two := r.send(t, first())
				switch want.state {
				case lambdaidem.Completed:
					wantReplay(t, two, one)
					r.wantRuns(t, 1)
				case lambdaidem.Released:
					if !sameAnswer(two, one) {
						t.Errorf("%s: the second answer is %+v", policy, two)
					}
					r.wantRuns(t, 2)
				default:
					wantProblem(t, two, http.StatusConflict, lambdaidem.ErrInProgress)
					r.wantRuns(t, 1)
				}
			}
		})
	}
}

func TestX1_RuleIsAnOption(t *testing.T) {
	for _, c := range []struct {
		outcome lambdaidem.Outcome
		state   lambdaidem.State
		event   lambdaidem.Kind
	}{
		{lambdaidem.OutcomeSucceeded, lambdaidem.Completed, lambdaidem.EventNew},
		{lambdaidem.OutcomeFailed, lambdaidem.Completed, lambdaidem.EventNew},
		{lambdaidem.OutcomeReleased, lambdaidem.Released, lambdaidem.EventReleased},
		{lambdaidem.OutcomeUncertain, lambdaidem.InProgress, lambdaidem.EventUncertain},
		// If a rule returns an invalid outcome, the lease is kept.
		{"", lambdaidem.InProgress, lambdaidem.EventUncertain},
		{"sUcCeEdEd", lambdaidem.InProgress, lambdaidem.EventUncertain},
	} {
		for _, code := range []int{200, 404, 500} {
			// Hold's own rule for 5xx doesn't apply in addition to the option.
			r := newRig(status(code), hold, func(o *lambdaidem.Options) {
				o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
					if r.Status != code || r.Body != fmt.Sprintf("status %d", code) {
						t.Errorf("the rule was shown %+v", r)
					}
					return c.outcome
				}
			})
			r.send(t, first())
			rec := r.record(t)
			if rec.State != c.state || c.state == lambdaidem.Completed && rec.Result.Outcome != c.outcome {
				t.Errorf("%q for %d: the record is %s %s", c.outcome, code, rec.State, rec.Result.Outcome)
			}
			r.wantEvents(t, c.event)
		}
	}
}

// The record is released, or of unknown outcome under Hold. The error is returned unchanged.
func TestX2_AnErrorIsReturned(t *testing.T) {
	failed := errors.New("read tcp: connection reset by peer")
	for policy, want := range map[lambdaidem.Policy]struct {
		state lambdaidem.State
		event lambdaidem.Kind
	}{
		lambdaidem.Rerun: {lambdaidem.Released, lambdaidem.EventReleased},
		lambdaidem.Hold:  {lambdaidem.InProgress, lambdaidem.EventUncertain},
	} {
		r := newRig(func(context.Context, request) (response, error) {
			return response{StatusCode: 200, Body: "partial"}, failed
		},
			func(o *lambdaidem.Options) { o.Policy = policy })
		out, err := r.handler(t.Context(), first())
		if err != failed || out.Body != "partial" { //nolint:errorlint // it has to be the very error
			t.Errorf("the guard returned %+v, %v", out, err)
		}
		if rec := r.record(t); rec.State != want.state {
			t.Errorf("under %s the record is %s", policy, rec.State)
		}
		r.wantEvents(t, want.event)
		if e := r.seen.last(t); e.Err != failed || e.Attempt != 1 { //nolint:errorlint // it has to be the very error
			t.Errorf("the event is %+v", e)
		}
	}
}

type card struct{ number []int }

// explode panics. The test looks for its name in the stack.
func explode(v any) { panic(v) }

// The panic continues with its own value and stack.
func TestX2_APanicGoesOnWithItsValueAndStack(t *testing.T) {
	for policy, state := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
		for name, value := range map[string]any{"type of its own": &card{[]int{1}}, "error": http.ErrAbortHandler, "text": "oops", "nil": nil} {
			t.Run(string(policy)+" "+name, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) { explode(value); return response{}, nil },
					func(o *lambdaidem.Options) { o.Policy = policy })
				func() {
					defer func() {
						got, stack := recover(), string(debug.Stack())
						if _, isNil := got.(*runtime.PanicNilError); got != value && (value != nil || !isNil) {
							t.Errorf("recovered %v, want %v", got, value)
						}
						if !strings.Contains(stack, "lambdaidem_test.explode") {
							t.Errorf("the frame that panicked is not in the stack:\n%s", stack)
						}
					}()
					out, err := r.handler(t.Context(), first())
					t.Errorf("it returned %+v, %v", out, err)
				}()
				if rec := r.record(t); rec.State != state {
					t.Errorf("the record is %s, want %s", rec.State, state)
				}
			})
		}
	}
}

func TestX2_GoexitReleases(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) { runtime.Goexit(); return response{}, nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err := r.handler(t.Context(), first())
		t.Errorf("it returned %+v, %v", out, err)
	}()
	<-done
	r.wantState(t, lambdaidem.Released)
	r.wantEvents(t, lambdaidem.EventReleased)
}

type declined struct{ reason string }

func (d *declined) Error() string { return "card declined: " + d.reason }

// Over HTTP, the answer is the same.
func TestX2_PermanentOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   lambdaidem.Code
	}{
		"plain":          {lambdaidem.Permanent(&declined{"stolen"}), 500, lambdaidem.ErrPermanent},
		"wrapped":        {fmt.Errorf("charge: %w", lambdaidem.Permanent(&declined{"stolen"})), 500, lambdaidem.ErrPermanent},
		"with an answer": {lambdaidem.Permanent(lambdaidem.Reject(402, "declined", "The card was declined.")), 402, "declined"},
		"5xx":            {lambdaidem.Permanent(lambdaidem.Reject(503, "gone", "Gone for good.")), 503, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, c.err })
			one := r.send(t, first())
			wantProblem(t, one, c.status, c.code)
			if strings.Contains(one.Body, "stolen") {
				t.Errorf("the error's text reached the client: %s", one.Body)
			}
			wantReplay(t, r.send(t, first()), one)
			r.wantRuns(t, 1)
			if rec := r.record(t); rec.Result.Outcome != lambdaidem.OutcomeFailed {
				t.Errorf("the outcome is %s", rec.Result.Outcome)
			}
		})
	}
}

// An error made by Reject goes through the outcome rule like a response.
func TestX2_RejectOverHTTP(t *testing.T) {
	for code, stored := range map[int]bool{400: true, 404: true, 409: true, 408: false, 425: false, 429: false, 500: false, 503: false} {
		r := newRig(func(context.Context, request) (response, error) {
			return response{}, fmt.Errorf("wrapped: %w", lambdaidem.Reject(code, "own_code", "Own detail."))
		})
		one := r.send(t, first())
		wantProblem(t, one, code, "own_code")
		if !strings.Contains(one.Body, `"about:blank"`) { // RFC 9457, 4.2.1
			t.Errorf("the type is not about:blank: %s", one.Body)
		}
		two := r.send(t, first())
		if stored {
			wantReplay(t, two, one)
		} else if replayed(two) || !sameAnswer(one, two) {
			t.Errorf("%d was stored: %+v", code, two)
		}
	}
}

// An error's own type is the type in its problem document (RFC 9457).
func TestX2_AnErrorsOwnTypeIsTold(t *testing.T) {
	const own = "https://example.com/problems/no-order"
	r := newRig(func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Permanent(&lambdaidem.Error{Code: "no_order", Status: 404, Type: own, Detail: "There is no such order."})
	})
	one := r.send(t, first())
	wantProblem(t, one, http.StatusNotFound, "no_order")
	if !strings.Contains(one.Body, `"type":"`+own+`"`) {
		t.Errorf("the document is %s", one.Body)
	}
	wantReplay(t, r.send(t, first()), one)
}

func TestX2_RejectWantsAnErrorStatus(t *testing.T) {
	for _, code := range []int{0, 200, 302, 399, 600} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, fmt.Sprint(code)) {
					t.Errorf("Reject(%d) panicked with %q", code, text)
				}
			}()
			err := lambdaidem.Reject(code, "c", "d")
			t.Errorf("Reject(%d) is %v", code, err)
		}()
	}
}

func TestX2_NilStaysNil(t *testing.T) {
	if lambdaidem.Permanent(nil) != nil || lambdaidem.Uncertain(nil) != nil {
		t.Error("a nil error became one")
	}
}

func TestX2_MarksDoNotHideTheError(t *testing.T) {
	own := &declined{"stolen"}
	for _, err := range []error{lambdaidem.Permanent(own), lambdaidem.Uncertain(own)} {
		if got := (*declined)(nil); !errors.As(err, &got) || got != own || err.Error() != own.Error() {
			t.Errorf("%v hides %v", err, own)
		}
	}
	if !errors.Is(lambdaidem.Permanent(own), lambdaidem.ErrPermanent) {
		t.Error("a permanent error has no code")
	}
	if err := lambdaidem.Permanent(lambdaidem.Reject(404, "c", "d")); errors.Is(err, lambdaidem.ErrPermanent) || !errors.Is(err, lambdaidem.Code("c")) {
		t.Errorf("%v has another code than its own", err)
	}
}

// The lease is kept, and L6 decides what happens after it.
func TestX2_UncertainKeepsTheLease(t *testing.T) {
	timeout := errors.New("the card network timed out")
	for name, err := range map[string]error{
		"plain": lambdaidem.Uncertain(timeout), "wrapped": fmt.Errorf("charge: %w", lambdaidem.Uncertain(timeout)),
		"inside permanent": lambdaidem.Permanent(lambdaidem.Uncertain(timeout)), // the more careful mark counts
		// The guard doesn't know the call behind the error. It may be an answer of another service,
		// for example.
		"permanent of an unknown outcome": lambdaidem.Permanent(fmt.Errorf("%w: %w", lambdaidem.ErrOutcomeUnknown, timeout)),
		"retryable of an unknown outcome": lambdaidem.Retryable(fmt.Errorf("%w: %w", lambdaidem.ErrOutcomeUnknown, timeout)),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, err })
			if _, got := r.handler(t.Context(), first()); !errors.Is(got, timeout) {
				t.Errorf("the error is %v", got)
			}
			r.wantEvents(t, lambdaidem.EventUncertain)
			wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
			r.wantRuns(t, 1)
		})
	}
	t.Run("with an answer", func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) {
			return response{}, lambdaidem.Uncertain(lambdaidem.Reject(504, "network", "Ask again later."))
		})
		wantProblem(t, r.send(t, first()), http.StatusGatewayTimeout, "network")
		r.wantState(t, lambdaidem.InProgress)
	})
}

func TestX2_DeadlineErrorsAreUncertainUnderHold(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, os.ErrDeadlineExceeded, fmt.Errorf("get: %w", context.DeadlineExceeded)} {
		for policy, state := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
			r := newRig(func(context.Context, request) (response, error) { return response{}, err }, func(o *lambdaidem.Options) { o.Policy = policy })
			if _, got := r.handler(t.Context(), first()); !errors.Is(got, err) {
				t.Errorf("the error is %v", got)
			}
			if rec := r.record(t); rec.State != state {
				t.Errorf("%s: after %v the record is %s", policy, err, rec.State)
			}
		}
	}
}

// A guard's own refusal is not a result of the application. If an outer handler passes it on, it
// isn't stored.
func TestX2_AGuardsRefusalIsNeverStored(t *testing.T) {
	inner := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	charge := func(ctx context.Context, payload int, fn func(context.Context) (string, error)) (string, error) {
		return lambdaidem.Do(ctx, inner, lambdaidem.Call{Operation: "charge", Key: "order-1", Payload: payload}, fn)
	}
	busy := true
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		body, err := charge(ctx, 1, func(context.Context) (string, error) { return "charged", nil })
		return response{StatusCode: 201, Body: body}, err
	})
	_, err := charge(t.Context(), 1, func(context.Context) (string, error) {
		out := r.send(t, first())
		wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
		if retryAfter(t, out) == 0 {
			t.Error("the refusal lost its Retry-After")
		}
		busy = false
		return "charged", nil
	})
	if err != nil || busy {
		t.Fatalf("the inner call: %v", err)
	}
	if rec := r.record(t); rec.State != lambdaidem.Released {
		t.Errorf("the refusal was kept: the record is %s", rec.State)
	}
	if out := r.send(t, first()); out.StatusCode != 201 || out.Body != "charged" {
		t.Errorf("the retry got %+v", out)
	}
}

type (
	order   struct{ ID string }
	receipt struct{ Total int }
)

// invoke sends an event through aws-lambda-go's own handler, as Lambda does, and returns what
// Lambda would report.
func invoke(t *testing.T, h any, event string) (payload, errorType, message string) {
	t.Helper()
	out, err := lambda.NewHandler(h).Invoke(t.Context(), []byte(event))
	if err == nil {
		return string(out), "", ""
	}
	if reported := (messages.InvokeResponse_Error{}); errors.As(err, &reported) {
		return "", reported.Type, reported.Message
	}
	typ := reflect.TypeOf(err) // what aws-lambda-go reports for any other error
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return "", typ.Name(), err.Error()
}

// A typed handler's replay has the same errorType and message.
func TestX2_FailuresOfATypedHandlerReplay(t *testing.T) {
	for name, c := range map[string]struct {
		err       error
		errorType string
		message   string
	}{
		"permanent":            {lambdaidem.Permanent(&declined{"stolen"}), "declined", "card declined: stolen"},
		"permanent in another": {fmt.Errorf("charge: %w", lambdaidem.Permanent(&declined{"stolen"})), "declined", "charge: card declined: stolen"},
		"permanent text":       {lambdaidem.Permanent(errors.New("no")), "errorString", "no"},
		"reject":               {lambdaidem.Reject(404, "no_order", "There is no such order."), "no_order", "no_order: There is no such order."},
	} {
		t.Run(name, func(t *testing.T) {
			g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
			runs := 0
			h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(context.Context, order) (receipt, error) {
				runs++
				return receipt{}, c.err
			})
			for range 3 {
				payload, errorType, message := invoke(t, h, `{"ID":"o-1"}`)
				if payload != "" || errorType != c.errorType || message != c.message {
					t.Errorf("Lambda reports %q, %q, %q", payload, errorType, message)
				}
			}
			if runs != 1 {
				t.Errorf("the handler ran %d times", runs)
			}
		})
	}
}

// A rejection has its code as errorType even if it isn't stored.
func TestX2_ARejectionIsReportedByItsCode(t *testing.T) {
	closed := lambdaidem.Reject(503, "closed", "It is night.")
	for name, err := range map[string]error{
		"as it is": closed, "retryable": lambdaidem.Retryable(closed), "uncertain": lambdaidem.Uncertain(closed),
	} {
		t.Run(name, func(t *testing.T) {
			g := lambdaidem.New(memstore.New(), quiet)
			h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(context.Context, order) (receipt, error) { return receipt{}, err })
			if _, errorType, message := invoke(t, h, `{"ID":"o-1"}`); errorType != "closed" || message != "closed: It is night." {
				t.Errorf("Lambda reports %q, %q", errorType, message)
			}
		})
	}
}

// An error that isn't stored is reported with its own type, as without the guard.
func TestX2_OtherErrorsOfATypedHandlerAreTheirOwn(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	own := error(&declined{"try again"})
	h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(context.Context, order) (receipt, error) { return receipt{}, own })
	for range 2 {
		if _, err := h(t.Context(), order{"o-1"}); err != own { //nolint:errorlint // it has to be the very error
			t.Errorf("the error is %v", err)
		}
	}
}

// Do's replay returns an error with the same code and message.
func TestX2_FailuresOfDoReplay(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		code    lambdaidem.Code
		message string
		status  int
	}{
		"permanent": {lambdaidem.Permanent(&declined{"stolen"}), lambdaidem.ErrPermanent, "card declined: stolen", 500},
		"reject":    {lambdaidem.Reject(402, "declined", "No funds."), "declined", "declined: No funds.", 402},
		"both":      {lambdaidem.Permanent(lambdaidem.Reject(503, "gone", "For good.")), "gone", "gone: For good.", 503},
	} {
		t.Run(name, func(t *testing.T) {
			g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
			runs := 0
			do := func() (int, error) {
				return lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k"}, func(context.Context) (int, error) {
					runs++
					return 7, c.err
				})
			}
			if n, err := do(); n != 7 || err != c.err { //nolint:errorlint // it has to be the very error
				t.Errorf("the first call returned %d, %v", n, err)
			}
			for range 2 {
				n, err := do()
				var own *lambdaidem.Error
				if n != 0 || !errors.Is(err, c.code) || err.Error() != c.message || !errors.As(err, &own) || own.Status != c.status {
					t.Errorf("the replay is %d, %#v", n, err)
				}
			}
			if !errors.Is(c.err, c.code) {
				t.Errorf("the first error has not the code %s", c.code)
			}
			if runs != 1 {
				t.Errorf("it ran %d times", runs)
			}
		})
	}
}

// Another service answers 409, because it is still carrying out the request. The handler passes that on by
// Reject. A retry must run the handler again.
func TestX4_ARefusalOfAnotherServicePassedOnByRejectIsNotStored(t *testing.T) {
	busy := true
	r := newRig(func(context.Context, request) (response, error) {
		if busy {
			return response{}, lambdaidem.Reject(http.StatusConflict, lambdaidem.ErrInProgress, "A request with this idempotency key is in progress. Repeat this request later to get its answer.")
		}
		return response{StatusCode: http.StatusCreated}, nil
	})
	one := r.send(t, first())
	busy = false
	if two := r.send(t, first()); two.StatusCode != http.StatusCreated {
		t.Errorf("told %d %s; then, although the other service is done, %d %s", one.StatusCode, one.Body, two.StatusCode, two.Body)
	}
}

// Whatever Options.Outcome returns that is not one of the constants has the effect of OutcomeUncertain, on
// responses as on errors.
func TestX4_AnOddOutcomeIsUncertain(t *testing.T) {
	answers := map[string]func() (response, error){
		"201":         func() (response, error) { return response{StatusCode: 201}, nil },
		"402":         func() (response, error) { return response{StatusCode: 402}, nil },
		"503":         func() (response, error) { return response{StatusCode: 503}, nil },
		"Reject(402)": func() (response, error) { return response{}, lambdaidem.Reject(402, "no_funds", "No.") },
		"Reject(503)": func() (response, error) { return response{}, lambdaidem.Reject(503, "later", "No.") },
		"wrapped Reject(402)": func() (response, error) {
			return response{}, fmt.Errorf("x: %w", lambdaidem.Reject(402, "no_funds", "No."))
		},
		"Permanent":             func() (response, error) { return response{}, lambdaidem.Permanent(errors.New("no")) },
		"Permanent(Reject)":     func() (response, error) { return response{}, lambdaidem.Permanent(lambdaidem.Reject(402, "no", "No.")) },
		"Retryable(Reject 402)": func() (response, error) { return response{}, lambdaidem.Retryable(lambdaidem.Reject(402, "no", "No.")) },
		"Join(Reject 402, x)": func() (response, error) {
			return response{}, errors.Join(lambdaidem.Reject(402, "no", "No."), errors.New("x"))
		},
		"error": func() (response, error) { return response{}, errors.New("x") },
	}
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		for name, answer := range answers {
			ends := map[lambdaidem.Outcome]string{}
			for _, o := range []lambdaidem.Outcome{lambdaidem.OutcomeUncertain, "odd", ""} {
				r := newRig(func(context.Context, request) (response, error) { return answer() }, func(opts *lambdaidem.Options) {
					opts.Policy, opts.Outcome = policy, func(*lambdaidem.Response) lambdaidem.Outcome { return o }
				})
				out, err := r.handler(t.Context(), first())
				ends[o] = fmt.Sprintf("%d %v, record %s", out.StatusCode, err, r.record(t).State)
			}
			for o, end := range ends {
				if want := ends[lambdaidem.OutcomeUncertain]; end != want {
					t.Errorf("policy %v, %s: with %q the client gets %s; with OutcomeUncertain %s", policy, name, o, end, want)
				}
			}
		}
	}
}
