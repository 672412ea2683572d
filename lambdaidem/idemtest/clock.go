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
// lease of an attempt that died, call [Clock.Advance] with more than the time that the invocation
// had left plus Options.MaxSkew (2 s by default). The deadlines of contexts and the pauses of
// Options.Wait don't follow a Clock.
//
// In a testing/synctest bubble, leave Options.Clock unset. The guard then uses the bubble's time,
// which time.Sleep advances.
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
