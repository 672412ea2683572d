package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// afterACrash serves a request twice. The client gets a 201, or the error that handle returns. The process
// dies at the end of the first attempt. afterACrash returns what the client gets from the second one.
func afterACrash(t *testing.T, handle func(context.Context, *lambdaidem.Guard) error) (r *rig, out response, err error) {
	t.Helper()
	died := false
	r = newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		err := handle(ctx, r.guard)
		if !died {
			died = true
			panic("the process dies")
		}
		if err != nil {
			return response{}, err
		}
		return response{StatusCode: http.StatusCreated}, nil
	})
	func() {
		defer func() { _ = recover() }()
		_, _ = r.handler(t.Context(), first())
	}()
	out, err = r.handler(t.Context(), first())
	return r, out, err
}

// wantSameFacts checks that the first caller of a call finds no other code and no other *Error than
// later callers. The first caller may find no *Error at all, as after Permanent of a plain error.
func wantSameFacts(t *testing.T, where string, one, two error) {
	t.Helper()
	code := func(err error) lambdaidem.Code { c, _ := errors.AsType[lambdaidem.Code](err); return c }
	own, found := errors.AsType[*lambdaidem.Error](one)
	replayed, _ := errors.AsType[*lambdaidem.Error](two)
	if code(one) != code(two) || found && (replayed == nil || own.Code != replayed.Code || own.Status != replayed.Status) {
		t.Errorf("%s: the first caller finds %v (%q), later callers %v (%q)", where, own, code(one), replayed, code(two))
	}
}

// The first caller of a Do finds the code and the status that later callers find, inside a guarded
// handler and outside.
func TestX2_TheFirstCallerFindsTheCodeOfTheReplay(t *testing.T) {
	down, declined := lambdaidem.Reject(503, "bank_down", "Later."), lambdaidem.Reject(402, "declined", "No.")
	for name, returned := range map[string]error{
		"503, 402":                  errors.Join(down, declined),
		"permanent, 503":            errors.Join(lambdaidem.Permanent(errBroken), down),
		"503, permanent":            errors.Join(down, lambdaidem.Permanent(errBroken)),
		"retryable(402), 404":       errors.Join(lambdaidem.Retryable(declined), lambdaidem.Reject(404, "no_account", "No.")),
		"retryable(402), permanent": errors.Join(lambdaidem.Retryable(declined), lambdaidem.Permanent(errBroken)),
		"code, permanent":           errors.Join(lambdaidem.Code("declined"), lambdaidem.Permanent(errBroken)),
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(nil).guard
			do := func(fn func(context.Context) (int, error)) error {
				_, err := lambdaidem.Do(t.Context(), g, charge, fn)
				return err
			}
			one := do(func(context.Context) (int, error) { return 0, returned })
			two := do(func(context.Context) (int, error) { t.Error("runs again"); return 0, nil })
			wantSameFacts(t, "outermost", one, two)
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				do := func() error {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, returned })
					return err
				}
				wantSameFacts(t, "inside", do(), do())
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
		})
	}
}

// A handler pays by another bank if it finds the code bank_down in the error of its Do. If it found
// the code in the first answer but not in the replay, then after it has paid and died, its retry
// would tell the client that nothing was paid.
func TestX2_NoCodeIsFoundInTheFirstAnswerAlone(t *testing.T) {
	for name, failure := range map[string]error{
		"two rejections": errors.Join(lambdaidem.Reject(503, "bank_down", "Later."), lambdaidem.Reject(402, "declined", "No.")),
		"code":           lambdaidem.Permanent(lambdaidem.Code("bank_down")),
	} {
		t.Run(name, func(t *testing.T) {
			paid := 0
			r, out, err := afterACrash(t, func(ctx context.Context, g *lambdaidem.Guard) error {
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { return 0, failure })
				if errors.Is(err, lambdaidem.Code("bank_down")) {
					_, err = lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "charge by the other bank", Key: "order-1"}, func(context.Context) (int, error) { paid++; return 1, nil })
				}
				return err
			})
			if rec := r.record(t); rec.State == lambdaidem.Completed && paid > 0 && out.StatusCode != http.StatusCreated {
				t.Errorf("paid %d times, and the client is told for good: %d %s, %v", paid, out.StatusCode, out.Body, err)
			}
		})
	}
}

// errSoldOut is a variable with an error of Reject, as the sample functions have some.
var errSoldOut = lambdaidem.Reject(409, "sold_out", "It is sold out.")

// A handler orders elsewhere if errors.Is finds the variable errSoldOut in the error of its Do. It
// finds the variable in the first answer and in the replay, and so takes the same way after it has
// died.
func TestX2_AVariableWithARejectionIsFoundInTheReplay(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			g := newRig(nil, func(o *lambdaidem.Options) { o.Policy = policy }).guard
			for n := range 2 {
				_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, errSoldOut })
				if !errors.Is(err, errSoldOut) {
					t.Errorf("outermost, call %d: %v is not errSoldOut; the code is %t", n, err, errors.Is(err, lambdaidem.Code("sold_out")))
				}
			}
		})
	}
	bought := 0
	_, out, _ := afterACrash(t, func(ctx context.Context, g *lambdaidem.Guard) error {
		_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { return 0, errSoldOut })
		if errors.Is(err, errSoldOut) {
			_, err = lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "order elsewhere", Key: "order-1"}, func(context.Context) (int, error) { bought++; return 1, nil })
		}
		return err
	})
	if bought > 0 && out.StatusCode == http.StatusConflict {
		t.Errorf("bought %d times, and the client is told for good: %d %s", bought, out.StatusCode, out.Body)
	}
}

// Another code or status is another rejection.
func TestX2_AnotherRejectionIsNotFound(t *testing.T) {
	g := newRig(nil).guard
	for range 2 { // the second error is a replay
		_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, errSoldOut })
		for _, other := range []error{
			lambdaidem.Reject(410, "sold_out", "It is sold out."), lambdaidem.Reject(409, "paid", "It is sold out."),
			&lambdaidem.Error{Code: "sold_out", Status: 409}, (*lambdaidem.Error)(nil),
		} {
			if errors.Is(err, other) {
				t.Errorf("errors.Is finds %v in %v", other, err)
			}
		}
	}
}

// Of two rejections that fn joins, only the one that is stored is found: a replay has no other.
func TestX2_OnlyTheStoredRejectionIsFound(t *testing.T) {
	down := lambdaidem.Reject(503, "bank_down", "Later.")
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		for n := range 2 {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, errors.Join(down, errSoldOut) })
			if errors.Is(err, down) || !errors.Is(err, errSoldOut) {
				t.Errorf("call %d: errors.Is finds bank_down: %t, sold_out: %t; want sold_out only", n, errors.Is(err, down), errors.Is(err, errSoldOut))
			}
			_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "card", Key: "k"}, func(context.Context) (int, error) { return 0, errors.Join(down, lambdaidem.Permanent(errBroken)) })
			if errors.Is(err, down) {
				t.Errorf("call %d: errors.Is finds bank_down in a permanent failure", n)
			}
		}
		return response{StatusCode: 503}, nil
	})
	r.send(t, first())
}

// Outside a guarded handler too, the first caller finds only the rejection that is stored. It would
// otherwise pay by another bank because of one that its retry doesn't find.
func TestX2_TheFirstCallerOfAnOutermostDoFindsOneRejection(t *testing.T) {
	declined, noAccount := lambdaidem.Reject(402, "declined", "No."), lambdaidem.Reject(404, "no_account", "No.")
	for name, failure := range map[string]error{
		"two rejections":       errors.Join(declined, noAccount),
		"rejection, permanent": errors.Join(declined, lambdaidem.Permanent(noAccount)),
		"rejection, code":      errors.Join(declined, lambdaidem.Code("no_account")),
		"rejection, 503":       errors.Join(declined, lambdaidem.Reject(503, "no_account", "Later.")),
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(nil).guard
			paid, tries := 0, 0
			var found []bool
			pay := func(ctx context.Context) error {
				tries++
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { return 0, failure })
				found = append(found, errors.Is(err, lambdaidem.Code("no_account")))
				if errors.Is(err, lambdaidem.Code("no_account")) {
					_, err = lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "charge by the other bank", Key: "order-1"}, func(context.Context) (int, error) { paid++; return 1, nil })
				}
				if tries == 1 {
					panic("the process dies")
				}
				return err
			}
			func() {
				defer func() { _ = recover() }()
				_ = pay(t.Context())
			}()
			if err := pay(t.Context()); paid > 0 && err != nil {
				t.Errorf("paid %d times, and the caller is told for good: %v; found the code in the first answer and the replay: %v", paid, err, found)
			}
		})
	}
}

// An *Error that the application made without Reject equals a variable of Reject in the first answer if
// it does in the replay.
func TestX2_AnErrorWithoutRejectIsComparedAlikeInAReplay(t *testing.T) {
	declined := lambdaidem.Reject(402, "declined", "No.")
	paid := 0
	_, out, err := afterACrash(t, func(ctx context.Context, g *lambdaidem.Guard) error {
		_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) {
			return 0, lambdaidem.Permanent(&lambdaidem.Error{Code: "declined", Status: 402})
		})
		if !errors.Is(err, declined) { // not declined: pay by another bank
			_, err = lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "other", Key: "order-1"}, func(context.Context) (int, error) { paid++; return 1, nil })
		}
		return err
	})
	if paid > 0 && out.StatusCode != 201 {
		t.Errorf("paid %d times, and the client is told %d %s %v", paid, out.StatusCode, out.Body, err)
	}
}

// The first caller finds the stored code also if it is in a list that errors.Is doesn't examine.
func TestX2_TheFirstCallerOfAnOutermostDoFindsTheCodeInAList(t *testing.T) {
	sold := lambdaidem.Reject(409, "sold_out", "No.")
	for name, failure := range map[string]error{"aggregate": aggregate{errBroken, sold}, "cause and list": &refusedOrder{cause: errBroken, problems: []error{sold}}} {
		t.Run(name, func(t *testing.T) {
			g := newRig(nil).guard
			var found []bool
			for range 2 {
				_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, failure })
				found = append(found, errors.Is(err, lambdaidem.Code("sold_out")))
			}
			if found[0] != found[1] {
				t.Errorf("errors.Is finds the code in the first answer: %t, in the replay: %t", found[0], found[1])
			}
		})
	}
}

// A variable of Reject with the code but not the status of the stored rejection is found neither in the
// first answer nor in the replay. The very *Error that is stored is found in the first answer.
func TestX2_ARejectionWithAnotherStatusIsNotFound(t *testing.T) {
	other, made := lambdaidem.Reject(404, "sold_out", "No."), &lambdaidem.Error{Code: "declined", Status: 402}
	g := newRig(nil).guard
	for n := range 2 {
		_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, errors.Join(errSoldOut, other) })
		if errors.Is(err, other) || !errors.Is(err, errSoldOut) {
			t.Errorf("call %d: errors.Is finds the 404: %t, the 409: %t; want the 409 only", n, errors.Is(err, other), errors.Is(err, errSoldOut))
		}
	}
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(made) })
		if !errors.Is(err, made) {
			t.Errorf("errors.Is does not find the stored error in %v", err)
		}
		return response{StatusCode: 503}, nil
	})
	r.send(t, first())
}
