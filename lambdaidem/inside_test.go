package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// X4: where a call inside may have had an effect, so may the handler around it, under
// either policy and whatever the cause says.
func TestX4_AnInnerOutcomeThatIsUnknownReleasesNothing(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		synctest.Test(t, func(t *testing.T) {
			charged := 0
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil })
				return response{StatusCode: 201}, err
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			r.store.failAlways(complete, requestLost)
			_, err := r.handler(ctx, first())
			if charged != 1 || err != nil || r.record(t).State != lambdaidem.InProgress {
				t.Errorf("under %s: charged %d times, %v; the record is %s", policy, charged, err, r.record(t).State)
			}
		})
	}
}

// X4: that nothing happened is what the author of the write said of this call; an earlier
// sending of the transaction may still commit.
func TestX4_AMarkInsideAnUnknownOutcomeSaysNothing(t *testing.T) {
	var r *rig
	var l *ledger
	r, l = withLedger(func(ctx context.Context, in request) (response, error) {
		call := lambdaidem.Call{Operation: "debit", Key: "k", Payload: in.Body}
		_, err := lambdaidem.Do(ctx, r.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Rerun }, optimistic), call, func(ctx context.Context) (int, error) {
			enlist(ctx, "debit "+in.Body)
			return 1, nil
		})
		return response{StatusCode: 201}, err
	}, hold)
	l.fail(commit, unsettled(lambdaidem.Retryable(errors.New("another payment of this account is under way"))))
	if _, err := r.handler(t.Context(), first()); err != nil || r.record(t).State != lambdaidem.InProgress {
		t.Errorf("%v; the record is %s", err, r.record(t).State)
	}
}

// X2: a typed handler that is called by a guarded one returns the marks of its error to it.
func TestX2_MarksOutOfATypedHandler(t *testing.T) {
	for want, mark := range map[lambdaidem.State]func(error) error{
		lambdaidem.InProgress: lambdaidem.Uncertain, lambdaidem.Released: lambdaidem.Retryable, lambdaidem.Completed: lambdaidem.Permanent,
	} {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Handler(r.guard, "charge", func(context.Context, order) (string, error) { return "k", nil },
				func(context.Context, order) (int, error) { return 0, mark(errWire) })(ctx, order{})
			return response{StatusCode: http.StatusBadGateway}, err
		})
		_, err := r.handler(t.Context(), first())
		if got := r.record(t).State; got != want {
			t.Errorf("the record is %s, want %s; %v", got, want, err)
		}
	}
}

// The innermost function returns late, and its answer can't be stored. The calls around it
// still store theirs, and the client is answered before the invocation's deadline.
func TestX3_CleaningUpAfterAnInnerCallLeavesTimeToAnswer(t *testing.T) {
	for name, end := range map[string]error{"completion": nil, "release": errWire} {
		for depth := 1; depth <= 3; depth++ {
			t.Run(fmt.Sprintf("%s, %d inside", name, depth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { cleanUpInside(t, depth, end) })
			})
		}
	}
}

// cleanUpInside sends a request whose handler makes calls inside each other, as many as
// depth. The function of the innermost call returns 300 ms before the invocation's
// deadline, with the error end. By then the time of all calls inside is over.
func cleanUpInside(t *testing.T, depth int, end error) {
	began := time.Now()
	var r *rig
	late := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		time.Sleep(time.Until(began.Add(2700 * time.Millisecond)))
		r.store.failAlways(complete, hangs)
		r.store.failAlways(release, hangs)
		return 1, end
	}
	var nest func(context.Context, int) (int, error)
	nest = func(ctx context.Context, depth int) (int, error) {
		if depth == 0 {
			return late(ctx)
		}
		call := lambdaidem.Call{Operation: "charge", Key: strconv.Itoa(depth)}
		_, _ = lambdaidem.Do(ctx, r.guard, call, func(ctx context.Context) (int, error) { return nest(ctx, depth-1) })
		r.store.failAlways(complete, nil)
		r.store.failAlways(release, nil)
		return 1, nil
	}
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := nest(ctx, depth)
		if took := time.Since(began); took > 2775*time.Millisecond { // the answer must be stored by 2850 ms
			t.Errorf("the inner call returned after %v", took)
		}
		return response{StatusCode: 201}, err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if out := r.sendCtx(ctx, t, first()); out.StatusCode != 201 || ctx.Err() != nil {
		t.Errorf("the answer is %d; %v", out.StatusCode, ctx.Err())
	}
	if rec := r.record(t); rec.State != lambdaidem.Completed {
		t.Errorf("the record is %s", rec.State)
	}
}

// An inner call that ends late is stored if the store answers in time.
func TestX3_AnInnerAnswerAfterItsTimeIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var r *rig
		within := func(ctx context.Context, operation string, fn func(context.Context) (int, error)) error {
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: operation, Key: "k"}, fn)
			return err
		}
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			return response{StatusCode: 201}, within(ctx, "order", func(ctx context.Context) (int, error) {
				return 1, within(ctx, "charge", func(ctx context.Context) (int, error) {
					<-ctx.Done()
					time.Sleep(time.Until(began.Add(2700 * time.Millisecond)))
					return 1, nil
				})
			})
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r.sendCtx(ctx, t, first())
		r.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventNew, lambdaidem.EventNew)
	})
}

// However much time the handler around it has left, an inner call whose own time is over
// cleans up for at most CleanupTimeout.
func TestX3_CleaningUpAfterAnInnerCallIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			r.store.fail(complete, hangs)
			_, _ = lambdaidem.Do(short, r.guard, charge, func(context.Context) (int, error) {
				time.Sleep(2 * time.Second)
				return 1, nil
			})
			return response{StatusCode: 201}, nil
		})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.sendCtx(ctx, t, first())
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
