package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

// maker makes a context with a deadline.
type maker func(context.Context, time.Time) (context.Context, context.CancelFunc)

func ours(parent context.Context, end time.Time) (context.Context, context.CancelFunc) {
	c := deadline.With(parent, end)
	return c, c.Cancel
}

type nameKey struct{}

// moment is one thing that can happen to a context, or that can be asked of it.
type moment struct {
	name string
	do   func(parent, own context.CancelFunc, c context.Context)
}

const parentEnds, timePasses, asks, asksWhy, until = "the parent ends", "time passes", "somebody asks", "somebody asks why", "Until makes another of it"

var errGone = errors.New("gone")

var moments = []moment{
	{parentEnds, func(parent, _ context.CancelFunc, _ context.Context) { parent() }},
	{"it is cancelled", func(_, own context.CancelFunc, _ context.Context) { own() }},
	{timePasses, func(_, _ context.CancelFunc, _ context.Context) { time.Sleep(2 * time.Second) }},
	{"somebody waits", func(_, _ context.CancelFunc, c context.Context) { c.Done() }},
	{asks, func(_, _ context.CancelFunc, c context.Context) { _ = c.Err() }},
	{asksWhy, func(_, _ context.CancelFunc, c context.Context) { _ = context.Cause(c) }},
	{"another is made of it", func(_, _ context.CancelFunc, c context.Context) {
		_, cancel := context.WithCancel(c)
		cancel()
	}},
	{until, func(_, _ context.CancelFunc, c context.Context) {
		_, cancel := deadline.Until(c, time.Now().Add(time.Millisecond))
		cancel()
	}},
}

// everyOrder calls f with every order of three moments.
func everyOrder(t *testing.T, f func(t *testing.T, order [3]moment)) {
	t.Helper()
	for _, first := range moments {
		for _, second := range moments {
			for _, third := range moments {
				t.Run(first.name+", "+second.name+", "+third.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { f(t, [3]moment{first, second, third}) })
				})
			}
		}
	}
}

// L5: what happens to a context, and what is asked of it, in every order of three:
// each is answered as the standard library's contexts answer. Only where nobody has
// looked at it since its deadline, and its parent has ended by now, is it its parent's
// end that counts: which of them came first, nobody can have seen.
func TestL5_IsAsTheStandardLibrarysInEveryOrder(t *testing.T) {
	everyOrder(t, func(t *testing.T, order [3]moment) {
		for _, end := range []time.Duration{time.Second, time.Hour} {
			for _, why := range []bool{false, true} {
				want := seen(t, context.WithDeadline, end, why, asSeen(order[:])...)
				if got := seen(t, ours, end, why, order[:]...); got != want {
					t.Errorf("%v: %+v; want %+v, as the standard library has it", end, got, want)
				}
			}
		}
	})
}

// asSeen leaves the deadline out where the parent ended after it, and nobody had
// looked in between.
func asSeen(order []moment) []moment {
	var timed, watched bool
	for _, m := range order {
		switch m.name {
		case timePasses:
			timed = true
		case parentEnds:
			if timed && !watched {
				return []moment{m}
			}
			watched = true
		case asks, asksWhy, until:
			watched = watched || timed
		default:
			watched = true
		}
	}
	return order
}

// end is what can be seen of a context.
type end struct {
	err, cause, child, childCause error
	done                          bool
	deadline                      time.Duration
	value                         any
}

func seen(t *testing.T, with maker, after time.Duration, why bool, order ...moment) end {
	t.Helper()
	began := time.Now()
	parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), nameKey{}, "parent"))
	defer cancelParent(nil)
	c, cancel := with(parent, began.Add(after))
	defer cancel()
	for _, m := range order {
		m.do(func() { cancelParent(errGone) }, cancel, c)
	}
	synctest.Wait()
	var e end
	if why { // before anything else is asked
		e.cause = context.Cause(c)
	}
	e.err = c.Err()
	e.cause = context.Cause(c)
	child, cancelChild := context.WithCancel(c)
	defer cancelChild()
	e.child, e.childCause = child.Err(), context.Cause(child)
	select {
	case <-c.Done():
		e.done = true
	default:
	}
	at, _ := c.Deadline()
	e.deadline, e.value = at.Sub(began), c.Value(nameKey{})
	return e
}

// ends are the ways in which a context ends.
var ends = map[string]func(parent, own context.CancelFunc){
	"at the deadline":   func(_, _ context.CancelFunc) { time.Sleep(time.Second) },
	"when cancelled":    func(_, own context.CancelFunc) { own() },
	"with their parent": func(parent, _ context.CancelFunc) { parent() },
}

// X7: what was made of a context ends with it, and at once.
func TestX7_ContextsMadeOfItEndWithIt(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancelParent := context.WithCancel(t.Context())
				defer cancelParent()
				c, cancel := ours(parent, time.Now().Add(time.Second))
				defer cancel()
				first, cancelFirst := deadline.Until(c, time.Now().Add(time.Second-time.Millisecond))
				defer cancelFirst()
				second, cancelSecond := deadline.Until(c, time.Now().Add(time.Second-time.Millisecond))
				defer cancelSecond()
				child, cancelChild := context.WithCancel(c)
				defer cancelChild()
				called := make(chan struct{})
				stop := context.AfterFunc(c, func() { close(called) })
				defer stop()
				end(cancelParent, cancel)
				synctest.Wait()
				for what, done := range map[string]<-chan struct{}{
					"it": c.Done(), "its child": child.Done(), "AfterFunc": called, "Until": first.Done(), "the second Until": second.Done(),
				} {
					select {
					case <-done:
					default:
						t.Errorf("%s has not ended", what)
					}
				}
				if child.Err() == nil || !errors.Is(child.Err(), c.Err()) {
					t.Errorf("the context made of it ended by %v, it by %v", child.Err(), c.Err())
				}
			})
		})
	}
}

// L5: a context that ends before another, and is made of it in its own way, is as the
// standard library's, whatever has happened to the other.
func TestL5_UntilIsAsTheStandardLibrarysInEveryOrder(t *testing.T) {
	everyOrder(t, func(t *testing.T, order [3]moment) {
		if len(asSeen(order[:])) < len(order) {
			return
		}
		for _, after := range []time.Duration{time.Second, 3 * time.Second, time.Hour} { // before that of the other, and after
			want := limited(t, context.WithDeadline, context.WithDeadline, after, order[:]...)
			if got := limited(t, ours, deadline.Until, after, order[:]...); got != want {
				t.Errorf("%v: %+v; want %+v, as the standard library has it", after, got, want)
			}
		}
	})
}

// limited is what can be seen of a context that until made of another, to end after
// that time, and of the other.
func limited(t *testing.T, with, until maker, after time.Duration, order ...moment) [2]end {
	t.Helper()
	var inner end
	outer := seen(t, func(parent context.Context, _ time.Time) (context.Context, context.CancelFunc) {
		return with(parent, time.Now().Add(1500*time.Millisecond))
	}, 0, false, append(order, moment{"", func(_, _ context.CancelFunc, c context.Context) {
		inner = seen(t, func(context.Context, time.Time) (context.Context, context.CancelFunc) {
			return until(c, time.Now().Add(after))
		}, 0, false)
	}})...)
	return [2]end{outer, inner}
}

// L5: the deadline that comes first stands, and none is none.
func TestL5_AnEarlierDeadlineOfTheParentStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancelParent := context.WithTimeout(t.Context(), time.Second)
		defer cancelParent()
		for _, end := range []time.Time{time.Now().Add(time.Minute), {}} {
			c := deadline.With(parent, end)
			defer c.Cancel()
			if at, ok := c.Deadline(); !ok || time.Until(at) != time.Second {
				t.Errorf("its deadline is in %v; want the parent's, in 1s", time.Until(at))
			}
			limited, cancel := deadline.Until(c, time.Now().Add(time.Minute))
			defer cancel()
			if at, ok := limited.Deadline(); !ok || time.Until(at) != time.Second {
				t.Errorf("the deadline of what Until made is in %v; want 1s", time.Until(at))
			}
		}
		c := deadline.With(parent, time.Now().Add(time.Minute))
		defer c.Cancel()
		<-c.Done()
		if !errors.Is(c.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended by %v; want the deadline", c.Err())
		}
	})
	c := deadline.With(t.Context(), time.Time{})
	if at, ok := c.Deadline(); ok || c.Err() != nil {
		t.Errorf("without a deadline it has one, %v, and has ended by %v", at, c.Err())
	}
	c.Cancel()
	if <-c.Done(); !errors.Is(c.Err(), context.Canceled) {
		t.Errorf("it ended by %v; want that it was cancelled", c.Err())
	}
}

// waited counts who waits for a context's end: that starts its timer.
type waited struct {
	context.Context
	waits int
}

func (w *waited) Done() <-chan struct{} {
	w.waits++
	return w.Context.Done()
}

// One timer is enough for a context that ends before the one that it is made of, and
// the next one after it.
func TestOneTimerForTheDeadlineThatComesFirst(t *testing.T) {
	c := deadline.With(t.Context(), time.Now().Add(time.Hour))
	defer c.Cancel()
	outer := &waited{Context: c}
	for range 2 {
		limited, cancel := deadline.Until(c, time.Now().Add(time.Minute))
		limited.Done()
		cancel()
	}
	allocations := testing.AllocsPerRun(100, func() {
		_ = c.Err()
		_, _ = c.Deadline()
		_ = c.Value(nameKey{})
	})
	if allocations != 0 {
		t.Errorf("it has become another: asking it takes %.0f allocations", allocations)
	}
	if _, cancel := deadline.Until(outer, time.Now().Add(time.Minute)); outer.waits == 0 {
		t.Error("nobody waits for a context of another type, whose end may be its own")
	} else {
		cancel()
	}
}

// Who passes a context by starts no timer for it, however often: it has ended with its
// parent then, which nobody saw end after the deadline.
func TestUntilStartsNoTimerButItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		c := deadline.With(parent, time.Now().Add(time.Second))
		defer c.Cancel()
		for range 3 {
			_, cancel := deadline.Until(c, time.Now().Add(time.Millisecond))
			cancel()
		}
		time.Sleep(2 * time.Second)
		end()
		if !errors.Is(c.Err(), context.Canceled) {
			t.Errorf("it has ended by %v; want its parent's end, since it has no timer", c.Err())
		}
	})
}

// No timer is started for a context that nobody waits for.
func TestATimerOnlyForWhoWaits(t *testing.T) {
	parent := t.Context()
	end := time.Now().Add(time.Hour)
	unasked := testing.AllocsPerRun(100, func() {
		c := deadline.With(parent, end)
		_ = c.Err()
		_, _ = c.Deadline()
		_ = c.Value(nameKey{})
		c.Cancel()
		_ = c.Err()
	})
	if unasked > 1 { // the context
		t.Errorf("it takes %.0f allocations; want 1", unasked)
	}
}

// halfDetached is a parent that has ended and does not say so.
type halfDetached struct{ context.Context }

func (halfDetached) Done() <-chan struct{} { return nil }

// X7: Cancel ends it whatever its parent says.
func TestX7_CancelEndsItUnderAnOddParent(t *testing.T) {
	parent, stop := context.WithCancel(t.Context())
	c := deadline.With(halfDetached{parent}, time.Now().Add(time.Hour))
	stop()
	c.Cancel()
	child, cancel := context.WithCancel(c)
	defer cancel()
	if c.Err() == nil || child.Err() == nil {
		t.Errorf("%v; its child: %v", c.Err(), child.Err())
	}
}

// X7: to end what Until made twice ends nothing else, and lets nothing else live on.
func TestX7_UntilIsEndedOnce(t *testing.T) {
	c := deadline.With(t.Context(), time.Now().Add(time.Hour))
	_, endFirst := deadline.Until(c, time.Now().Add(time.Minute))
	endFirst()
	second, endSecond := deadline.Until(c, time.Now().Add(time.Minute))
	defer endSecond()
	endFirst()
	c.Cancel()
	if second.Err() == nil {
		t.Error("what Until made lives on")
	}
}
