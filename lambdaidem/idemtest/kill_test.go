package idemtest_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

const lambdaTimeout = 10 * time.Second

// crashes sends the request of post and fails the test unless that kills the simulated process.
func (r *rig) crashes(t *testing.T) {
	t.Helper()
	idemtest.Crash(t, lambdaTimeout, func(ctx context.Context) { _, _ = r.handler(ctx, post()) })
}

// killed returns a handler that answers with the number of the attempt. If kill is true, the
// handler kills the process in the first attempt.
func killed(r **rig, kill bool) handler {
	return func(ctx context.Context, _ request) (response, error) {
		if kill && lambdaidem.Attempt(ctx) == 1 {
			(*r).store.Kill(ctx)
		}
		return response{StatusCode: 201, Body: "attempt " + string(rune('0'+lambdaidem.Attempt(ctx)))}, nil
	}
}

// Wherever an attempt is killed, it leaves the record as a real process would, and the next
// requests get the answers that the contract specifies.
func TestL6_WhateverKillsAnAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		verb  idemtest.Verb
		fault idemtest.Fault // None: the handler itself calls Kill
		runs  int            // number of handler runs before the death
		then  string         // the answer after the end of the lease, under policy Rerun
		held  lambdaidem.Code
	}{
		"before the lease":      {idemtest.Acquire, idemtest.KillBefore, 0, "attempt 1", ""},
		"with the lease":        {idemtest.Acquire, idemtest.KillAfter, 0, "attempt 2", lambdaidem.ErrAttemptAbandoned},
		"in the handler":        {"", idemtest.None, 1, "attempt 2", lambdaidem.ErrAttemptAbandoned},
		"before the completion": {idemtest.Complete, idemtest.KillBefore, 1, "attempt 2", lambdaidem.ErrAttemptAbandoned},
		"after the completion":  {idemtest.Complete, idemtest.KillAfter, 1, "attempt 1", ""},
	} {
		for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				var r *rig
				r = newRig(killed(&r, c.fault == idemtest.None), func(o *lambdaidem.Options) { o.Policy = policy })
				if c.fault != idemtest.None {
					r.store.Next(c.verb, c.fault)
				}
				r.crashes(t)
				r.wantRuns(t, c.runs)
				if slices.Contains(r.verbs(), idemtest.Release) {
					t.Error("a dead process gave its lease back")
				}
				if inHand := c.then == "attempt 2"; inHand {
					wantCode(t, r.send(idemtest.Invocation(t, lambdaTimeout), t), 409, lambdaidem.ErrInProgress)
				}
				r.clock.Advance(lambdaTimeout + 3*time.Second)
				out := r.send(idemtest.Invocation(t, lambdaTimeout), t)
				if policy == lambdaidem.Hold && c.held != "" {
					wantCode(t, out, 409, c.held)
				} else if out.Body != c.then {
					t.Errorf("the answer is %+v, want %s", out, c.then)
				}
			})
		}
	}
}

// Killing a duplicate while it waits has no effect on the record, which the first attempt
// completes.
func TestL8_KilledWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) {
			time.Sleep(time.Second)
			return response{StatusCode: 201}, nil
		}, func(o *lambdaidem.Options) { o.Clock, o.Wait = nil, 5*time.Second })
		r.store.Next(idemtest.Get, idemtest.KillBefore)
		var all sync.WaitGroup
		all.Go(func() { r.send(t.Context(), t) })
		synctest.Wait()
		r.crashes(t)
		all.Wait()
		r.wantRuns(t, 1)
		if got := r.verbs(); !slices.Equal(got, []idemtest.Verb{idemtest.Acquire, idemtest.Acquire, idemtest.Get, idemtest.Complete}) {
			t.Errorf("the store was asked for %v", got)
		}
	})
}

// Instead of moving a Clock, a test in a synctest bubble can call time.Sleep to end the lease of a
// killed attempt.
func TestL6_KilledInABubbleAndTakenOverAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(killed(&r, true), func(o *lambdaidem.Options) { o.Clock = nil })
		r.crashes(t)
		time.Sleep(lambdaTimeout + time.Second)
		wantCode(t, r.send(t.Context(), t), 409, lambdaidem.ErrInProgress)
		time.Sleep(time.Second)
		if out := r.send(t.Context(), t); out.Body != "attempt 2" {
			t.Errorf("the answer is %+v", out)
		}
	})
}

// Kill ends all attempts of the process: a guarded handler dies together with the guarded call
// inside it, and guarded calls that it would make afterwards don't reach the store.
func TestKill_EndsTheWholeProcess(t *testing.T) {
	for name, inner := range map[string]bool{"the inner call": true, "the handler": false} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			var after error
			do := func(ctx context.Context, key string, fn func(context.Context) (int, error)) error {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "op", Key: key}, fn)
				return err
			}
			dies := true
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				if !dies {
					return response{StatusCode: 201, Body: "again"}, nil
				}
				defer func() { after = do(ctx, "afterwards", func(context.Context) (int, error) { return 1, nil }) }()
				err := do(ctx, "before", func(ctx context.Context) (int, error) {
					if inner {
						r.store.Kill(ctx)
					}
					return 1, nil
				})
				if err != nil {
					return response{}, err
				}
				r.store.Kill(ctx)
				return response{StatusCode: 201}, nil
			})
			r.crashes(t)
			before, afterwards := r.guard.RecordID(lambdaidem.Identity{Operation: "op", Key: "before"}), r.guard.RecordID(lambdaidem.Identity{Operation: "op", Key: "afterwards"})
			var verbs []idemtest.Verb
			for _, c := range r.store.Calls() {
				verbs = append(verbs, c.Verb)
				if c.RecordID == afterwards || after != nil {
					t.Errorf("a dead process began anew: %+v, %v", c, after)
				}
			}
			want := []idemtest.Verb{idemtest.Acquire, idemtest.Acquire, idemtest.Complete}
			if inner {
				want = want[:2]
			}
			if !slices.Equal(verbs, want) || r.store.Calls()[1].RecordID != before {
				t.Errorf("the store saw %+v", r.store.Calls())
			}
			dies = false
			r.clock.Advance(time.Minute)
			if out := r.send(t.Context(), t); out.Body != "again" {
				t.Errorf("the answer is %+v", out)
			}
		})
	}
}

// A call of Get has no lease. If it is made with the context of a handler, or with one derived from
// it, it belongs to that handler's process, on any goroutine.
func TestKill_AtAReadInAHandler(t *testing.T) {
	for name, elsewhere := range map[string]bool{"on its goroutine": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				call := lambdaidem.Call{Operation: "op", Key: "busy"}
				busy := func(ctx context.Context) error {
					_, err := lambdaidem.Do(ctx, r.guard, call, func(context.Context) (int, error) {
						time.Sleep(5 * time.Second)
						return 1, nil
					})
					return err
				}
				var all sync.WaitGroup
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					if !elsewhere {
						return response{StatusCode: 201}, busy(ctx)
					}
					all.Go(func() { t.Errorf("a dead process got an answer: %v", busy(context.WithoutCancel(ctx))) })
					time.Sleep(time.Second)
					r.store.Kill(ctx)
					return response{}, nil
				}, func(o *lambdaidem.Options) { o.Clock, o.Wait = nil, 8*time.Second })
				all.Go(func() {
					if err := busy(t.Context()); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				if !elsewhere {
					r.store.Next(idemtest.Get, idemtest.KillBefore)
				}
				r.crashes(t)
				reads := len(r.verbs())
				all.Wait()
				if got := r.verbs(); slices.Contains(got, idemtest.Release) || len(got) != reads+1 {
					t.Errorf("after the death the store was asked for %v", got[reads:])
				}
			})
		})
	}
}

// Kill also works if Options.Random, set for a test, gives all attempts the same token.
func TestKill_WhereTokensRepeat(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "op", Key: "k"}, func(ctx context.Context) (int, error) {
			r.store.Kill(ctx)
			return 1, nil
		})
		return response{}, err
	}, func(o *lambdaidem.Options) { o.Random = zeros{} })
	r.crashes(t)
	if got := r.verbs(); !slices.Equal(got, []idemtest.Verb{idemtest.Acquire, idemtest.Acquire}) {
		t.Errorf("the store was asked for %v", got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A handler that runs without a record, because the guard failed open, can be killed too.
func TestX5_KilledAfterItFailedOpen(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		r.store.Kill(ctx)
		return response{StatusCode: 201}, nil
	}, func(o *lambdaidem.Options) { o.FailOpen = true })
	r.store.Next(idemtest.Acquire, idemtest.LoseRequest)
	r.crashes(t)
	if got := r.verbs(); !slices.Equal(got, []idemtest.Verb{idemtest.Acquire}) {
		t.Errorf("the store was asked for %v", got)
	}
}

// Killing an attempt does not affect a later attempt with the same key.
func TestL3_KillEndsOneAttempt(t *testing.T) {
	var r *rig
	r = newRig(killed(&r, true))
	r.crashes(t)
	r.clock.Advance(time.Minute)
	r.send(t.Context(), t)
	if out := r.send(t.Context(), t); out.Body != "attempt 2" || out.Headers[idemtest.Mark] != "true" {
		t.Errorf("the answer is %+v", out)
	}
}

func TestCrash_WantsACrash(t *testing.T) {
	for name, f := range map[string]func(context.Context){"returns": func(context.Context) {}, "ends by itself": func(context.Context) { runtime.Goexit() }} {
		if got := failures(t, func(f2 *fake) { idemtest.Crash(f2, lambdaTimeout, f) }); !strings.Contains(got, "nothing was killed") {
			t.Errorf("%s: it complains %q", name, got)
		}
	}
}

// Kill and the kill faults panic outside of Crash, because there is no process to kill.
func TestKill_NeedsACrash(t *testing.T) {
	if got := panics(t, func() { idemtest.NewStore(nil).Kill(t.Context()) }); !strings.Contains(got, "inside of Crash") {
		t.Errorf("it panics with %q", got)
	}
	r := newRig(nil)
	r.store.Next(idemtest.Acquire, idemtest.KillBefore)
	if got := panics(t, func() { r.send(t.Context(), t) }); !strings.Contains(got, "inside of Crash") {
		t.Errorf("it panics with %q", got)
	}
}

// A crash ends the whole batch: messages that were handled stay handled, and no further message
// begins.
func TestV2_ACrashEndsTheWholeBatch(t *testing.T) {
	for name, c := range map[string]struct {
		concurrency int
		verb        idemtest.Verb // the second call of this verb kills; "" means that the second message's handler does
		fault       idemtest.Fault
		handled     int // how often the second message was handled in total, after the next delivery
	}{
		"in the handler":                  {1, "", idemtest.None, 2},
		"in the handler, of many at once": {3, "", idemtest.None, 2},
		"before the lease":                {1, idemtest.Acquire, idemtest.KillBefore, 1},
		"with the lease":                  {1, idemtest.Acquire, idemtest.KillAfter, 1},
		"before the completion":           {1, idemtest.Complete, idemtest.KillBefore, 2},
		"after the completion":            {1, idemtest.Complete, idemtest.KillAfter, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store, clock := idemtest.NewStore(nil), idemtest.NewClock()
			guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
				o.Clock, o.Observer, o.KeyOptional = clock.Now, lambdaidem.Discard, true
			})
			var mu sync.Mutex
			handled, dies := map[string]int{}, true
			hooks := 0
			handler := guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
				mu.Lock()
				handled[m.Body]++
				mu.Unlock()
				if m.Body == "b" && dies && c.verb == "" {
					store.Kill(ctx)
				}
				return nil
			}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
				o.Concurrency = c.concurrency
				o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
					return strings.TrimSuffix(m.Body, "unguarded"), nil
				}
				o.OnFailure = func(context.Context, events.SQSMessage, error) { hooks++ }
			})
			queue := "orders"
			if c.concurrency > 1 {
				queue = "orders.fifo" // all messages are in one group, so they are handled in order
			}
			batch := idemtest.SQS(queue, idemtest.Message{Body: "a"}, idemtest.Message{Body: "b"}, idemtest.Message{Body: "c"}, idemtest.Message{Body: "unguarded"})
			if c.verb != "" {
				store.Next(c.verb, idemtest.None, c.fault)
			}
			idemtest.Crash(t, lambdaTimeout, func(ctx context.Context) {
				_, _ = handler(ctx, batch)
				t.Error("the dead process went on after the batch")
			})
			if handled["a"] != 1 || handled["c"] != 0 || handled["unguarded"] != 0 || hooks != 0 {
				t.Errorf("handled %v and called %d hooks", handled, hooks)
			}
			dies = false
			clock.Advance(time.Minute)
			if out, err := handler(t.Context(), batch); err != nil || len(out.BatchItemFailures) != 0 {
				t.Errorf("the next delivery: %+v, %v", out, err)
			}
			if handled["a"] != 1 || handled["b"] != c.handled || handled["c"] != 1 || handled["unguarded"] != 1 {
				t.Errorf("after the next delivery handled %v", handled)
			}
		})
	}
}

// No hook is called for a message whose handler was still running when the process died.
func TestV2_ACrashEndsTheMessagesBesides(t *testing.T) {
	store, dead := idemtest.NewStore(nil), make(chan struct{})
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer, o.KeyOptional = lambdaidem.Discard, true })
	handler := guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
		if m.Body == "unguarded" {
			<-dead
			return errDeclined
		}
		defer close(dead)
		store.Kill(ctx)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Concurrency = 2
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			return strings.TrimSuffix(m.Body, "unguarded"), nil
		}
		o.OnFailure = func(context.Context, events.SQSMessage, error) {
			t.Error("a hook was told of a dead process's message")
		}
	})
	idemtest.Crash(t, lambdaTimeout, func(ctx context.Context) {
		_, _ = handler(ctx, idemtest.SQS("orders", idemtest.Message{Body: "unguarded"}, idemtest.Message{Body: "b"}))
	})
}
