package idemtest

import (
	"sync"
	"time"
)

// Clock is a clock that a test moves by hand, for Options.Clock:
//
//	clock := idemtest.NewClock()
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Clock = clock.Now })
//
// The guard uses the clock to decide whether a lease has ended or a record has expired. To end the
// lease of an attempt that died, call [Clock.Advance]. Advance the clock by more than the time that
// the invocation had left plus Options.MaxSkew (2 s by default). A Clock moves only when Advance is
// called, so a slow machine never ends a lease by chance.
//
// A Clock affects neither the deadlines of contexts nor the pauses of a guard that waits
// (Options.Wait): both follow real time.
//
// In a bubble of testing/synctest, a test needs no Clock. Don't set Options.Clock there: time.Now
// is virtual, and time.Sleep advances leases, records, deadlines and pauses without any real
// waiting. A Clock also works in a bubble, but time.Sleep doesn't move it.
//
// A Clock is safe for concurrent use. Create one with [NewClock].
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a Clock that is set to the current time.
func NewClock() *Clock { return &Clock{now: time.Now().Round(0)} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward by d, or backward if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
