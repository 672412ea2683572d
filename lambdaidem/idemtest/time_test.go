package idemtest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

func TestClock_MovesByHandAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Nanosecond)
		c, start := idemtest.NewClock(), time.Now()
		time.Sleep(time.Hour)
		if got := c.Now(); !got.Equal(start) {
			t.Errorf("it shows %v, and was made at %v", got, start)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { c.Advance(time.Minute) })
		}
		all.Wait()
		c.Advance(-time.Minute)
		if got := c.Now().Sub(start); got != 9*time.Minute {
			t.Errorf("it went on by %v", got)
		}
	})
}

// A Clock works in a synctest bubble as it does outside.
func TestL6_TakenOverInABubbleByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(killed(&r, true))
		r.crashes(t)
		r.clock.Advance(lambdaTimeout + 3*time.Second)
		if out := r.send(t.Context(), t); out.Body != "attempt 2" {
			t.Errorf("the answer is %+v", out)
		}
	})
}

func TestInvocation_IsAsLambdaGivesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := idemtest.Invocation(t, time.Second)
		deadline, ok := ctx.Deadline()
		if !ok || !deadline.Equal(time.Now().Add(time.Second)) {
			t.Errorf("its deadline is %v, %t", deadline, ok)
		}
		lc, ok := lambdacontext.FromContext(ctx)
		if !ok || !strings.HasSuffix(lc.InvokedFunctionArn, ":function:idemtest") || lambdaidem.UUIDv4or7Key(lc.AwsRequestID) != nil {
			t.Errorf("its Lambda context is %+v", lc)
		}
		if other, _ := lambdacontext.FromContext(idemtest.Invocation(t, time.Second)); other.AwsRequestID == lc.AwsRequestID {
			t.Error("two invocations have one request id")
		}
		time.Sleep(2 * time.Second)
		if ctx.Err() != context.DeadlineExceeded {
			t.Errorf("after its deadline its error is %v", ctx.Err())
		}
	})
}

func TestInvocation_EndsWithItsTest(t *testing.T) {
	var over <-chan struct{}
	t.Run("", func(t *testing.T) { over = idemtest.Invocation(t, time.Hour).Done() })
	select {
	case <-over:
	default:
		t.Error("it outlives its test")
	}
}

// A Recorder keeps the events that the guard reports, until Forget is called.
func TestO1_RecorderRemembers(t *testing.T) {
	r := newRig(nil)
	if got := failures(t, func(f *fake) { r.seen.Last(f) }); !strings.Contains(got, "nothing") {
		t.Errorf("without an event it complains %q", got)
	}
	r.send(t.Context(), t)
	r.send(t.Context(), t)
	if got := r.seen.Kinds(); !slices.Equal(got, []lambdaidem.Kind{lambdaidem.EventNew, lambdaidem.EventReplayed}) {
		t.Errorf("it saw %v", got)
	}
	if all, last := r.seen.All(), r.seen.Last(t); len(all) != 2 || all[1].Kind != last.Kind || last.Attempt != 1 {
		t.Errorf("it has %+v, and %+v last", all, last)
	}
	r.seen.Forget()
	if got := r.seen.All(); len(got) != 0 {
		t.Errorf("it has %+v", got)
	}
}
