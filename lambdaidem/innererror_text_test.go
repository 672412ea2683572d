package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

type cardDeclined struct{ why error }

func (e *cardDeclined) Error() string { return "declined: " + e.why.Error() }
func (e *cardDeclined) Unwrap() error { return e.why }

// The handler has charged. It takes the *Error of a refused call out of the error of Do, and wraps
// it. The invoker must not read "send a new key".
func TestX2_TheInvokerReadsNothingOfARefusalTakenOut(t *testing.T) {
	r := newRig(nil)
	one := func(context.Context) (int, error) { return 1, nil }
	receipt := lambdaidem.Call{Operation: "receipt", Key: "r", Payload: 1}
	_, _ = lambdaidem.Do(t.Context(), r.guard, receipt, one)
	receipt.Payload = 2
	for name, with := range map[string]func(error) error{
		"wrapped": func(err error) error { return fmt.Errorf("receipt: %w", err) },
		"taken out": func(err error) error {
			if e, ok := errors.AsType[*lambdaidem.Error](err); ok {
				return fmt.Errorf("receipt (%d): %w", e.Status, e)
			}
			return err
		},
		"taken out, permanent": func(err error) error {
			if e, ok := errors.AsType[*lambdaidem.Error](err); ok {
				return lambdaidem.Permanent(fmt.Errorf("receipt (%d): %w", e.Status, e))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := lambdaidem.Handler(r.guard, "order", func(context.Context, order) (string, error) { return name, nil },
				func(ctx context.Context, _ order) (int, error) {
					_, _ = lambdaidem.Do(ctx, r.guard, charge, one)
					_, err := lambdaidem.Do(ctx, r.guard, receipt, one)
					return 0, with(err)
				})
			_, errorType, text := invoke(t, h, `{"ID":"o-1"}`)
			if strings.Contains(text, "Send a new key") {
				t.Errorf("the invoker is told %q: %q", errorType, text)
			}
		})
	}
}

// psp marks its error as Permanent, and pay and the handler return it as it is. The errorType is that
// of the marked error, as if the handler or pay had marked it.
func TestX2_TheErrorTypeOfAPermanentErrorTwoCallsInside(t *testing.T) {
	for deep := range 3 {
		t.Run(fmt.Sprint(deep), func(t *testing.T) {
			r := newRig(nil)
			var call func(ctx context.Context, n int) (int, error)
			call = func(ctx context.Context, n int) (int, error) {
				if n == 0 {
					return 0, lambdaidem.Permanent(&cardDeclined{errWire})
				}
				return lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: fmt.Sprint("call ", n), Key: "k"}, func(ctx context.Context) (int, error) { return call(ctx, n-1) })
			}
			h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
				func(ctx context.Context, _ order) (int, error) { return call(ctx, deep) })
			for _, which := range []string{"first", "replay"} {
				if _, errorType, text := invoke(t, h, `{"ID":"o-1"}`); errorType != "cardDeclined" {
					t.Errorf("%s: %q: %q", which, errorType, text)
				}
			}
		})
	}
}

// pay's failure is stored as its 402. The handler returns it; its own record stores another answer.
func TestX4_AStoredInnerFailureIsStoredAsItIs(t *testing.T) {
	for name, inner := range map[string]error{
		"retryable first": errors.Join(lambdaidem.Retryable(lambdaidem.Reject(http.StatusTooManyRequests, "slow_down", "")), noPayment),
		"503 first":       fmt.Errorf("%w: %w", lambdaidem.Retryable(lambdaidem.Reject(http.StatusServiceUnavailable, "maintenance", "")), noPayment),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, inner })
				return response{}, err
			})
			one := r.send(t, first())
			again := r.send(t, first())
			other := r.send(t, post("key-2", `{"amount":100}`)) // gets the stored failure of the same charge
			if one.StatusCode != http.StatusPaymentRequired || again.StatusCode != http.StatusPaymentRequired || one.StatusCode != other.StatusCode {
				t.Errorf("told %d %s, then %d; another request with the same charge %d %s", one.StatusCode, one.Body, again.StatusCode, other.StatusCode, other.Body)
			}
		})
	}
}

// LastFailure names the refusal of a call further inside, whatever wraps it.
func TestX10_LastFailureNamesARefusalFurtherInside(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: "k"}, func(context.Context) (int, error) { return 1, nil })
			if err != nil {
				err = fmt.Errorf("receipt: %w", err)
			}
			return 0, err
		})
		if err != nil {
			err = fmt.Errorf("charge: %w", err)
		}
		return response{}, err
	})
	_, _ = r.handler(t.Context(), first())
	rec := r.record(t)
	if rec.LastFailure != "inner_idempotency_store_unavailable" {
		t.Errorf("last failure %q", rec.LastFailure)
	}
}

// An inner call rejects for now, with 402; then a call of the handler's own fails, without effect.
// The record is released, so the client must not be told 402.
func TestX2_AnOwnMarkBesideAnInnerRejectionSendsNone(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(noPayment) })
		return response{}, errors.Join(err, lambdaidem.Retryable(errWire)) // no bank was reached
	})
	out, err := r.handler(t.Context(), first())
	if rec := r.record(t); rec.State != lambdaidem.Completed && out.StatusCode == http.StatusPaymentRequired {
		t.Errorf("the record is %s, and the client is told %d %s, %v", rec.State, out.StatusCode, out.Body, err)
	}
}

// The same text for a typed handler and its replay, if Options.Outcome stores a 404 as a success.
func TestX2_TheFirstTextOfASuccessfulRejectionIsThatOfItsReplay(t *testing.T) {
	gone := lambdaidem.Reject(http.StatusNotFound, "gone", "It is gone.")
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
			if r.Status == http.StatusNotFound {
				return lambdaidem.OutcomeSucceeded
			}
			return lambdaidem.DefaultOutcome(r)
		}
	})
	h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
		func(ctx context.Context, _ order) (int, error) {
			c := charge
			c.Payload = 1
			_, _ = lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { return 1, nil })
			c.Payload = 2
			_, err := lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { return 1, nil })
			return 0, errors.Join(gone, err)
		})
	_, type1, one := invoke(t, h, `{"ID":"o-1"}`)
	_, type2, two := invoke(t, h, `{"ID":"o-1"}`)
	if type1 != type2 || one != two {
		t.Errorf("first %q %q, replay %q %q", type1, one, type2, two)
	}
}

// A message's handler charges, and then a guarded call inside it is refused. OnFailure must not find
// the code of that refusal as if the message were refused.
func TestX2_OnFailureFindsNoCodeOfACallInside(t *testing.T) {
	r := newRig(nil)
	charged := 0
	h := r.guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
		if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
			return err
		}
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: m.MessageId}, func(context.Context) (int, error) { return 1, nil })
		return err
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) {
			if errors.Is(err, lambdaidem.ErrStoreUnavailable) && charged > 0 {
				t.Errorf("OnFailure is told that the message was not carried out: %v", err)
			}
		}
	})
	_, _ = h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-1", Body: "{}", EventSourceARN: "arn:aws:sqs:eu-west-1:1:q"}}})
}

// A message carries an S3 event, and its handler calls a guarded handler of that event. Two records
// are of one object: the first fails, so the second is not begun. The message has begun and failed:
// it is logged at WARN as any failed message, and OnFailure does not find ErrNotBegun.
func TestX2_AMessageWithAPartThatDidNotBeginHasBegun(t *testing.T) {
	r := newRig(nil)
	object := func(sequencer string) events.S3EventRecord {
		rec := events.S3EventRecord{EventSource: "aws:s3", EventName: "ObjectCreated:Put"}
		rec.S3.Bucket.Arn = "arn:aws:s3:::b"
		rec.S3.Bucket.Name, rec.S3.Object.Key, rec.S3.Object.URLDecodedKey, rec.S3.Object.Sequencer = "b", "o", "o", sequencer
		return rec
	}
	inner := r.guard.S3(func(context.Context, events.S3EventRecord) error { return errWire })
	handled := func(ctx context.Context, _ events.SQSMessage) error {
		return inner(ctx, events.S3Event{Records: []events.S3EventRecord{object("1"), object("1")}})
	}
	event := func(id string) events.SQSEvent {
		return events.SQSEvent{Records: []events.SQSMessage{{MessageId: id, Body: id, EventSourceARN: "arn:aws:sqs:eu-west-1:1:q"}}}
	}
	logged := captureLog(t, func() { _, _ = r.guard.SQS(handled)(t.Context(), event("m-1")) })
	if !strings.Contains(logged, "m-1") {
		t.Errorf("no line of the failed message in:\n%s", logged)
	}
	_, _ = r.guard.SQS(handled, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(_ context.Context, m events.SQSMessage, err error) {
			if errors.Is(err, lambdaidem.ErrNotBegun) {
				t.Errorf("message %s began, and OnFailure is told that it did not: %v", m.MessageId, err)
			}
		}
	})(t.Context(), event("m-2"))
}

// LastFailure names the type of the error that an inner call's function returned, whatever wraps it.
func TestX10_LastFailureNamesTheErrorOfAnInnerCall(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, &cardDeclined{errWire} })
		return response{}, fmt.Errorf("charge: %w", err)
	})
	_, _ = r.handler(t.Context(), first())
	if rec := r.record(t); rec.LastFailure != "lambdaidem_test.cardDeclined" {
		t.Errorf("last failure %q", rec.LastFailure)
	}
}

type orderFailed struct{ why error }

func (e *orderFailed) Error() string { return "order: " + e.why.Error() }
func (e *orderFailed) Unwrap() error { return e.why }

// The mark is that of the inner call. The error around it is the handler's own, and Lambda reports its type.
func TestX2_AHandlersErrorAroundAMarkedInnerErrorKeepsItsType(t *testing.T) {
	for name, markIt := range map[string]func(error) error{"permanent": lambdaidem.Permanent, "retryable": lambdaidem.Retryable, "uncertain": lambdaidem.Uncertain} {
		for outer, again := range map[string]func(error) error{"none": func(err error) error { return err }, "permanent": lambdaidem.Permanent, "retryable": lambdaidem.Retryable} {
			t.Run(name+" in "+outer, func(t *testing.T) {
				r := newRig(nil)
				h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
					func(ctx context.Context, _ order) (int, error) {
						_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, markIt(&cardDeclined{errWire}) })
						return 0, again(&orderFailed{err})
					})
				for range 2 {
					_, errorType, text := invoke(t, h, `{"ID":"o-1"}`)
					if errorType != "orderFailed" && !strings.HasPrefix(errorType, "idempotency_") {
						t.Errorf("the errorType is %q: %s", errorType, text)
					}
				}
			})
		}
	}
}

// The record of an inner call does not store that the card was declined, because a retry may use another
// card. The invoker must not take the request for one that was declined for good. A failure of the
// handler's own is reported, whatever its mark is.
func TestX2_TheInvokerIsToldNoRejectionThatAnInnerCallHasNotStored(t *testing.T) {
	declined := lambdaidem.Reject(402, "card_declined", "No.")
	for _, c := range []struct {
		inner, own error
		errorType  string
	}{
		{lambdaidem.Retryable(declined), nil, "Error"},
		{lambdaidem.Retryable(lambdaidem.Reject(503, "bank_closed", "No.")), nil, "bank_closed"},
		{declined, nil, "card_declined"},
		{nil, lambdaidem.Retryable(declined), "card_declined"},
	} {
		r := newRig(nil)
		h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
			func(ctx context.Context, _ order) (int, error) {
				n, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, c.inner })
				if err == nil {
					err = c.own
				}
				return n, err
			})
		if _, errorType, text := invoke(t, h, `{"ID":"o-1"}`); errorType != c.errorType {
			t.Errorf("%v, %v: the invoker is told %q: %s; want %q", c.inner, c.own, errorType, text, c.errorType)
		}
	}
}
