package idemtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

// Without faults, the wrapper passes the suite like the store inside it.
func TestStore(t *testing.T) {
	storetest.Test(t, func(*testing.T) lambdaidem.Store { return idemtest.NewStore(nil) })
}

// An answer that the inner store keeps outside the record can be replayed through the wrapper.
func TestR3_AnAnswerApartIsReplayedThroughTheWrapper(t *testing.T) {
	guard := lambdaidem.New(idemtest.NewStore(apart{memstore.New()}))
	for range 2 {
		got, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "key-1"},
			func(context.Context) (string, error) { return "paid", nil })
		if got != "paid" || err != nil {
			t.Errorf("Do: %q, %v", got, err)
		}
	}
}

// apart is a store that keeps every answer outside its record.
type apart struct{ *memstore.Store }

func (a apart) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	rec, err := a.Store.Acquire(ctx, c)
	if rec.Result.Value != nil {
		rec.Result.Apart, rec.Result.Value = string(rec.Result.Value), nil
	}
	return rec, err
}

func (a apart) Load(_ context.Context, rec lambdaidem.Record) (lambdaidem.Result, error) {
	text, _ := rec.Result.Apart.(string)
	rec.Result.Value, rec.Result.Apart = []byte(text), nil
	return rec.Result, nil
}

// The error of each fault says correctly whether the call may have been applied.
func TestX8_FaultsAreWhatTheySay(t *testing.T) {
	for name, c := range map[string]struct {
		fault      idemtest.Fault
		reason     lambdaidem.Reason
		notApplied bool
		happened   bool
	}{
		"request lost": {idemtest.LoseRequest, lambdaidem.ReasonUnreachable, false, false},
		"reply lost":   {idemtest.LoseReply, lambdaidem.ReasonTimeout, false, true},
		"throttled":    {idemtest.Refuse(lambdaidem.ReasonThrottled), lambdaidem.ReasonThrottled, true, false},
		"refused":      {idemtest.Refuse(lambdaidem.ReasonUnknown), lambdaidem.ReasonUnknown, true, false},
		"hanging":      {idemtest.Hang, lambdaidem.ReasonTimeout, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inner := memstore.New()
			s := idemtest.NewStore(inner)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			s.Next(idemtest.Acquire, c.fault)
			now := time.Now()
			rec, err := s.Acquire(ctx, lambdaidem.Claim{ID: "id", Token: "a", Now: now, LeaseEnd: now.Add(time.Minute), Expires: now.Add(time.Hour)})
			got, ok := errors.AsType[*lambdaidem.StoreError](err)
			if !ok || got.Op != "acquire" || got.Reason != c.reason || got.NotApplied != c.notApplied || rec.State != lambdaidem.Absent {
				t.Errorf("Acquire: %+v, %v", rec, err)
			}
			if kept, err := inner.Get(t.Context(), "id", now); err != nil || (kept.State != lambdaidem.Absent) != c.happened {
				t.Errorf("the store has %+v, %v", kept, err)
			}
		})
	}
}

func TestStore_FaultsComeInTheirOrder(t *testing.T) {
	s := idemtest.NewStore(nil)
	fails := func() bool {
		_, err := s.Get(t.Context(), "id", time.Now())
		return err != nil
	}
	s.Next(idemtest.Get, idemtest.None, idemtest.LoseReply)
	s.Next(idemtest.Get, idemtest.LoseRequest, idemtest.None)
	s.Always(idemtest.Get, idemtest.Refuse(lambdaidem.ReasonNoTable))
	s.Always(idemtest.Acquire, idemtest.LoseRequest)
	for i, want := range []bool{false, true, true, false, true, true} {
		if got := fails(); got != want {
			t.Errorf("call %d fails: %t", i, got)
		}
	}
	s.Always(idemtest.Get, idemtest.None)
	if fails() {
		t.Error("it fails for ever")
	}
	calls := s.Calls()
	if len(calls) != 7 || calls[1] != (idemtest.Call{Verb: idemtest.Get, RecordID: "id", Fault: idemtest.LoseReply}) || calls[6].Fault != idemtest.None {
		t.Errorf("the calls were %+v", calls)
	}
	calls[0].Verb = "" // the caller may change the slice, which is a copy
	if s.Calls()[0].Verb != idemtest.Get {
		t.Error("Calls gives its own list away")
	}
}

func TestStore_PanicsAtWhatItDoesNotKnow(t *testing.T) {
	s := idemtest.NewStore(nil)
	panics(t, func() { s.Next("put", idemtest.LoseReply) })
	panics(t, func() { s.Next(idemtest.Get, "lose") })
	panics(t, func() { s.Always(idemtest.Get, "lose") })
	panics(t, func() { s.Kill(t.Context()) })
}

// If the reply to a completion is lost, the guard completes again and finds the record
// completed.
func TestL4_ALostCompletionReplyIsNoLoss(t *testing.T) {
	r := newRig(nil)
	r.store.Next(idemtest.Complete, idemtest.LoseReply)
	if out := r.send(t.Context(), t); out.Body != "run 1" {
		t.Errorf("the answer is %+v", out)
	}
	if out := r.send(t.Context(), t); out.Body != "run 1" {
		t.Errorf("the second answer is %+v", out)
	}
	r.wantRuns(t, 1)
	if got := r.verbs(); !slices.Equal(got, []idemtest.Verb{idemtest.Acquire, idemtest.Complete, idemtest.Complete, idemtest.Acquire}) {
		t.Errorf("the store was asked for %v", got)
	}
}

// A call of the store that hangs ends with the invocation, here in virtual time.
func TestX5_AHangingStoreEndsWithTheInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Clock = nil })
		r.store.Always(idemtest.Acquire, idemtest.Hang)
		began := time.Now()
		wantCode(t, r.send(idemtest.Invocation(t, 10*time.Second), t), 503, lambdaidem.ErrStoreUnavailable)
		if took := time.Since(began); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		r.store.Always(idemtest.Acquire, idemtest.None)
		r.store.Always(idemtest.Complete, idemtest.LoseReply)
		wantCode(t, r.send(idemtest.Invocation(t, 10*time.Second), t), 503, lambdaidem.ErrOutcomeUnknown)
		if out := r.send(t.Context(), t); out.Body != "run 1" {
			t.Errorf("the answer is %+v", out)
		}
	})
}

// SaveSteps can be made to fail like any other call, and can kill the process.
func TestE5_TheSavingOfAStepCanFail(t *testing.T) {
	charges := 0
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		body, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) {
			charges++
			return "charged", nil
		})
		return response{StatusCode: 201, Body: body}, err
	})
	r.store.Next(idemtest.SaveSteps, idemtest.LoseReply, idemtest.KillAfter)
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { r.send(ctx, t) })
	r.clock.Advance(time.Hour)
	if out := r.send(t.Context(), t); out.Body != "charged" || charges != 1 {
		t.Errorf("charged %d times: %+v", charges, out)
	}
	want := []idemtest.Verb{idemtest.Acquire, idemtest.SaveSteps, idemtest.SaveSteps, idemtest.Acquire, idemtest.Acquire, idemtest.Complete}
	if got := r.verbs(); !slices.Equal(got, want) {
		t.Errorf("the store was asked for %v", got)
	}
}

// SaveSteps returns an error if the inner store is not a StepStore.
func TestE5_StepsNeedAStoreInsideThatKeepsThem(t *testing.T) {
	s := idemtest.NewStore(struct{ lambdaidem.Store }{memstore.New()})
	_, err := s.SaveSteps(t.Context(), lambdaidem.Lease{ID: "id", Token: "a"}, lambdaidem.Steps{"charge": nil}, time.Now())
	got, ok := errors.AsType[*lambdaidem.StoreError](err)
	if !ok || got.Op != "save_steps" || got.Reason != lambdaidem.ReasonInvalid || !got.NotApplied {
		t.Errorf("SaveSteps: %v", err)
	}
}

// Prepare calls Prepare of the inner store, if that has one, and returns its error.
func TestS1_TheStoreInsideIsPrepared(t *testing.T) {
	inside := &prepared{Store: memstore.New(), err: errors.New("no key")}
	if err := idemtest.NewStore(inside).Prepare(t.Context()); !errors.Is(err, inside.err) {
		t.Errorf("Prepare: %v", err)
	}
	if err := idemtest.NewStore(memstore.New()).Prepare(t.Context()); err != nil {
		t.Errorf("Prepare of a store that needs nothing: %v", err)
	}
}

type prepared struct {
	lambdaidem.Store
	err error
}

func (p *prepared) Prepare(context.Context) error { return p.err }
