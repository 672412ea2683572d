package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// skippable returns the parts of a handler that its retry may skip. Each of them calls f inside the
// part.
func skippable(r *rig) map[string]func(ctx context.Context, f func()) error {
	do := func(ctx context.Context, g *lambdaidem.Guard, f func()) error {
		_, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "inner", Key: "k"}, func(context.Context) (int, error) {
			f()
			return 1, nil
		})
		return err
	}
	return map[string]func(ctx context.Context, f func()) error{
		"step": func(ctx context.Context, f func()) error {
			_, err := lambdaidem.Step(ctx, "step", func(context.Context) (int, error) {
				f()
				return 1, nil
			})
			return err
		},
		"Do": func(ctx context.Context, f func()) error { return do(ctx, r.guard, f) },
		"optimistic Do": func(ctx context.Context, f func()) error {
			return do(ctx, r.guard.With(optimistic), f)
		},
		"Do behind an unguarded request": func(ctx context.Context, f func()) error {
			in := first()
			in.RequestContext.HTTP.Method = http.MethodPut
			_, err := r.guard.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
				return response{StatusCode: 200}, do(ctx, r.guard, f)
			})(ctx, in)
			return err
		},
		"request": func(ctx context.Context, f func()) error {
			_, err := r.guard.APIGatewayV2(func(context.Context, request) (response, error) {
				f()
				return response{StatusCode: 200}, nil
			})(ctx, post("inner", "{}"))
			return err
		},
		"outcome rule of a request": func(ctx context.Context, f func()) error {
			ruled := r.guard.With(func(o *lambdaidem.Options) {
				o.Outcome = func(resp *lambdaidem.Response) lambdaidem.Outcome {
					f()
					return lambdaidem.DefaultOutcome(resp)
				}
			})
			_, err := ruled.APIGatewayV2(created1)(ctx, post("inner", "{}"))
			return err
		},
	}
}

func created1(ctx context.Context, _ request) (response, error) { return created(ctx) }

// A retry of the handler gets the stored result of such a part and does not run it again. A write
// that the part enlisted in the handler's transaction would be missing from the retry's
// transaction, and the caller would be told that everything succeeded.
func TestE1_NoWriteIsEnlistedByWhatARetrySkips(t *testing.T) {
	for name := range skippable(nil) {
		for outer, method := range map[string]string{"guarded": http.MethodPost, "unguarded": http.MethodPut} {
			if outer == "unguarded" && name == "step" {
				continue // a step is never stored then, so it runs each time
			}
			t.Run(name+" in a handler that runs "+outer, func(t *testing.T) {
				var r *rig
				var l *ledger
				tried := false
				r, l = withLedger(func(ctx context.Context, _ request) (response, error) {
					tx := enlist(ctx, "before")
					err := skippable(r)[name](ctx, func() {
						tried = true
						tx.enlist("inside")
					})
					tx.enlist("after")
					return response{StatusCode: 201}, err
				})
				in := first()
				in.RequestContext.HTTP.Method = method
				func() {
					defer func() {
						if v, _ := recover().(string); !strings.Contains(v, "a retry skips it") {
							t.Errorf("the panic is %q", v)
						}
					}()
					_, _ = r.handler(t.Context(), in)
				}()
				if !tried {
					t.Error("nothing was tried")
				}
				l.wantDone(t)
			})
		}
	}
}

// The handler may enlist writes before and after such a part.
func TestE1_WritesAreEnlistedAroundWhatARetrySkips(t *testing.T) {
	for name := range skippable(nil) {
		t.Run(name, func(t *testing.T) {
			var r *rig
			var l *ledger
			runs := 0
			r, l = withLedger(func(ctx context.Context, _ request) (response, error) {
				runs++
				tx := enlist(ctx, "before")
				if err := skippable(r)[name](ctx, func() {}); err != nil {
					return response{}, err
				}
				tx.enlist("after")
				if runs == 1 {
					return response{}, errors.New("try again")
				}
				return created(ctx)
			})
			if _, err := r.handler(t.Context(), first()); err == nil {
				t.Error("the first attempt succeeded")
			}
			if out := r.send(t, first()); out.StatusCode != 201 {
				t.Errorf("%+v", out)
			}
			l.wantDone(t, "before", "after")
		})
	}
}

// Two such parts may overlap: writes are allowed again once both have ended. The same holds for a
// transaction that the handler gets only while one of them runs.
func TestE1_WritesAreRefusedUntilTheLastPartHasEnded(t *testing.T) {
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		step := func(ctx context.Context, name string, f func()) {
			if _, err := lambdaidem.Step(ctx, name, func(context.Context) (int, error) {
				f()
				return 1, nil
			}); err != nil {
				t.Error(err)
			}
		}
		var tx *ledgerTx
		wantRefused := func() {
			t.Helper()
			defer func() {
				if recover() == nil {
					t.Error("the write was taken")
				}
			}()
			tx.enlist("inside")
		}
		begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			step(ctx, "long", func() {
				close(begun)
				<-end
			})
		}()
		<-begun
		got, err := lambdaidem.TxOf(ctx)
		if err != nil {
			t.Error(err)
		}
		tx = got.(*ledgerTx)
		wantRefused()
		step(ctx, "short", wantRefused)
		wantRefused()
		close(end)
		<-ended
		tx.enlist("write")
		return created(ctx)
	})
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("%+v", out)
	}
	l.wantDone(t, "write")
}

// An inner call has its own transaction.
func TestE1_InnerCallEnlistsInItsOwnTransaction(t *testing.T) {
	var r *rig
	var l *ledger
	r, l = withLedger(func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "outer")
		if _, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "inner", Key: "k"}, func(ctx context.Context) (int, error) {
			enlist(ctx, "inner")
			return 1, nil
		}); err != nil {
			return response{}, err
		}
		l.wantDone(t, "inner")
		return created(ctx)
	})
	r.send(t, first())
	l.wantDone(t, "inner", "outer")
}

// An inner call with the key of the handler that makes it would complete the handler's own record
// or wait for it. So it is refused at any depth.
func TestE1_CallInsideItselfIsRefused(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){
		"optimistic": optimistic,
		"locked":     func(*lambdaidem.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := withLedger(nil, opt)
			call := lambdaidem.Call{Operation: "pay", Key: "k"}
			between := lambdaidem.Call{Operation: "other", Key: "k"}
			_, err := lambdaidem.Do(t.Context(), r.guard, call, func(ctx context.Context) (string, error) {
				enlist(ctx, "outer")
				return lambdaidem.Do(ctx, r.guard, between, func(ctx context.Context) (string, error) {
					return lambdaidem.Do(ctx, r.guard, call, func(ctx context.Context) (string, error) {
						enlist(ctx, "inner")
						return "paid", nil
					})
				})
			})
			if err == nil || !strings.Contains(err.Error(), string(lambdaidem.ErrRequestInvalid)) {
				t.Errorf("the error is %v; want %v", err, lambdaidem.ErrRequestInvalid)
			}
			l.wantDone(t)
		})
	}
}
