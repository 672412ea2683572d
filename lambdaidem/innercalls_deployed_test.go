package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// changed lists deployments after which the guard can't tell whether paid101 is the payload of a
// record from before the deployment.
var changed = map[string][]func(*lambdaidem.Options){
	"a pointer is ignored":  {ignoring("/memo")},
	"the first secret":      {secrets(newSecret)},
	"a larger body":         {func(o *lambdaidem.Options) { o.MaxBody = 1 << 10 }},
	"less depth":            {func(o *lambdaidem.Options) { o.MaxJSONDepth = 2 }},
	"a header counts":       {counting("content-type")},
	"the first, unreleased": {secrets(newSecret, oldSecret)},
}

// chargesOf counts the charges that the handlers of a test make for each payload.
type chargesOf map[string]int

// charge makes an inner call whose key depends on the payload of the request.
func (c chargesOf) charge(ctx context.Context, t *testing.T, g *lambdaidem.Guard, body string) {
	t.Helper()
	key, err := lambdaidem.HashKey(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "charge", Key: key}, func(context.Context) (int, error) {
		c[body]++
		return 1, nil
	}); err != nil {
		t.Errorf("the charge of %s returned %v", body, err)
	}
}

// The record of a released request that made a charge stays bound to its payload, whatever is
// deployed, because the charge of another payload would have another key. The client is also told
// not to send a new key.
func TestE6_ADeploymentDoesNotUnbindARequestThatMadeAnInnerCall(t *testing.T) {
	for name, with := range changed {
		for order, key := range map[string]func(ctx context.Context, call func()){
			"no downstream key":           func(_ context.Context, call func()) { call() },
			"a downstream key before it":  func(ctx context.Context, call func()) { _ = lambdaidem.DownstreamKey(ctx, "bank"); call() },
			"a downstream key after it":   func(ctx context.Context, call func()) { call(); _ = lambdaidem.DownstreamKey(ctx, "bank") },
			"another attempt asked first": nil,
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				charges := chargesOf{}
				var inner *lambdaidem.Guard
				h := func(ctx context.Context, in request) (response, error) {
					key(ctx, func() { charges.charge(ctx, t, inner, in.Body) })
					return response{StatusCode: http.StatusBadGateway}, nil
				}
				r := newRig(nil)
				inner = r.guard
				if key == nil {
					r = r.later(func(ctx context.Context, _ request) (response, error) {
						_ = lambdaidem.DownstreamKey(ctx, "bank")
						return response{StatusCode: http.StatusBadGateway}, nil
					})
					r.mustRun(t, post("key-1", paid100))
					key = func(_ context.Context, call func()) { call() }
				}
				r = r.later(h)
				r.mustRun(t, post("key-1", paid100))
				next := r.later(h, with...)
				for _, body := range []string{paid101, paid102, paid101} {
					out := next.send(t, post("key-1", body))
					wantProblem(t, out, http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
					if !strings.Contains(out.Body, "Do not send it with a new key") {
						t.Errorf("the client is told %s", out.Body)
					}
					if e := r.seen.last(t); e.Kind != lambdaidem.EventMismatch || e.Err == nil {
						t.Errorf("the event is %s, %v", e.Kind, e.Err)
					}
				}
				if len(charges) != 1 || charges[paid100] != 1 {
					t.Errorf("charged: %v", charges)
				}
			})
		}
	}
}

// The downstream key of an inner call is derived from the id of that call's record, which may
// depend on the payload of the outer request. It therefore binds the outer record like an inner
// call.
func TestE6_AnInnerDownstreamKeyBindsTheRequestAsAnInnerCall(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "charge", Key: "k"}, func(ctx context.Context) (int, error) {
			_ = lambdaidem.DownstreamKey(ctx, "bank")
			return 0, lambdaidem.Retryable(errWire)
		})
		return response{}, err
	})
	r.mustRun(t, post("key-1", paid100))
	wantProblem(t, r.later(nil, ignoring("/memo")).send(t, post("key-1", paid101)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	if bound := r.record(t).Bound; bound != lambdaidem.BoundByInnerCall {
		t.Errorf("the record is bound by %q", bound)
	}
}

// An attempt that died may have made a charge, so its record stays bound to its payload after a
// deployment, whether or not an earlier attempt asked for a downstream key.
func TestE6_ADeploymentDoesNotUnbindARecordWhoseAttemptDied(t *testing.T) {
	for name, first := range map[string]handler{
		"it asked for nothing": nil,
		"an attempt before it asked for a downstream key": func(ctx context.Context, _ request) (response, error) {
			_ = lambdaidem.DownstreamKey(ctx, "bank")
			return response{}, lambdaidem.Retryable(errWire)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(first)
				if first != nil {
					r.mustRun(t, post("key-1", paid100))
				}
				r.later(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) }).mustRun(t, post("key-1", paid100))
				time.Sleep(leaseWithoutDeadline)
				r.later(func(context.Context, request) (response, error) { return response{}, errWire }).mustRun(t, post("key-1", paid100))
				next := r.later(nil, ignoring("/memo"))
				wantProblem(t, next.send(t, post("key-1", paid101)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
				next.mustRun(t, post("key-1", paid100)) // the digest of this payload is the same in both versions
			})
		})
	}
}

// The reason why a record is bound is kept when a later attempt takes it over and dies.
func TestE6_AnInnerCallBindsARecordForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charges := chargesOf{}
		r := newRig(nil)
		inner := r.guard
		r.later(func(ctx context.Context, in request) (response, error) {
			charges.charge(ctx, t, inner, in.Body)
			return response{}, errWire
		}).mustRun(t, post("key-1", paid100))
		r.later(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) }).mustRun(t, post("key-1", paid100))
		time.Sleep(leaseWithoutDeadline)
		r.later(func(ctx context.Context, _ request) (response, error) {
			_ = lambdaidem.DownstreamKey(ctx, "bank")
			return response{}, errWire
		}).mustRun(t, post("key-1", paid100))
		if bound := r.record(t).Bound; bound != lambdaidem.BoundByInnerCall {
			t.Errorf("the record is bound by %q", bound)
		}
	})
}

// A record that needs the answer of an inner call has BoundByInnerCall even if an earlier attempt
// died, so that a purge warns the operator.
func TestO2_AnInnerCallIsNotHiddenByADeadAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.later(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) }).mustRun(t, first())
		time.Sleep(leaseWithoutDeadline)
		r.later(func(ctx context.Context, _ request) (response, error) {
			return response{}, errors.Join(errWire, r.charged(ctx))
		}).mustRun(t, first())
		if rec := r.record(t); rec.Bound != lambdaidem.BoundByInnerCall {
			t.Errorf("released, needs the answer of an inner call, and is bound by %q: purge does not warn", rec.Bound)
		}
	})
}
