package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
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
