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
// Leases and records end by it: [Clock.Advance] by more than the time that the
// invocation had left and Options.MaxSkew (2 s by default), and the lease of an
// attempt that died is over. It stands still otherwise, so that no slow machine
// ends a lease by chance. It moves no deadline of a context and no pause of a
// guard that waits (Options.Wait): these go by real time.
//
// In a bubble of testing/synctest there is a second way. Leave Options.Clock
// alone there: time.Now is virtual, and time.Sleep passes leases, records,
// deadlines and pauses alike, without waiting. A Clock works there too, but
// time.Sleep does not move it.
//
// A Clock is safe for concurrent use. Make one with [NewClock].
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the time at which it was made.
func NewClock() *Clock { return &Clock{now: time.Now().Round(0)} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on, or back where d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
