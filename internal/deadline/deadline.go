// Package deadline implements contexts with a deadline that start a timer only when a
// goroutine waits for them.
//
// A guarded request uses several contexts with deadlines: for the claim, the handler and
// the completion. Almost every context is canceled long before its deadline, and no
// goroutine has waited for it. Allocating a timer is cheap, but starting one is not: if it
// is the next timer of the process to fire, the runtime wakes a sleeping thread to wait
// for it, in the middle of the request.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context is a [context.Context] that ends like one made by [context.WithDeadline]. It
// starts its timer only when Done is called or a context is derived from it. A context
// that [Until] derives from it need not start the timer. Err is exact even without a
// timer. If both the parent and the deadline have ended the Context by the time of the
// first look at it, Err returns the parent's error.
//
// A Context can be embedded in another struct: [Context.Begin] initializes a zero
// Context. Its methods are safe for concurrent use.
type Context struct {
	parent context.Context
	end    time.Time // the deadline; zero if only the parent's deadline applies

	mu        sync.Mutex
	std       context.Context // the standard library's context that all calls go to; nil until Done is called or the end is noticed
	cancelStd context.CancelFunc
	cancelled bool   // Cancel was called while std was nil
	inner     *inner // the live context that Until derived from the parent; nil if there is none
}

var _ context.Context = (*Context)(nil)

// With returns a Context that ends when its parent does, and at end at the latest. If end
// is zero, the Context has only its parent's deadline. The caller must call Cancel when it
// no longer needs the Context.
func With(parent context.Context, end time.Time) *Context {
	c := new(Context)
	c.Begin(parent, end)
	return c
}

// Begin initializes a zero Context, such as one embedded in a struct. Its arguments are
// those of [With]. Call it once, before any other method.
func (c *Context) Begin(parent context.Context, end time.Time) {
	c.parent, c.end = parent, end
	if last, ok := parent.Deadline(); ok && last.Before(end) {
		c.end = time.Time{}
	}
}

// Deadline returns the time at which the context ends at the latest, and whether it has a
// deadline at all.
func (c *Context) Deadline() (time.Time, bool) {
	if c.end.IsZero() {
		return c.parent.Deadline()
	}
	return c.end, true
}

// Done returns a channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standard().Done()
}

// Err returns nil until the context has ended. After that it returns [context.Canceled]
// or [context.DeadlineExceeded], and always the same one.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.std != nil:
		return c.std.Err()
	case c.cancelled:
		return context.Canceled
	case c.hasEnded():
		return c.standard().Err() // keep the context, so that every later call returns the same error
	}
	return nil
}

// Value returns the parent's value for key.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	from := c.std
	switch {
	case from != nil:
	case c.cancelled: // context.Cause asks for a value, and must not get the parent's cause
		from = c.standard()
	default:
		from = c.parent
	}
	c.mu.Unlock()
	return from.Value(key)
}

// Cancel ends the context and every context derived from it.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		c.inner.cancel()
	}
	switch {
	case c.std != nil:
		c.cancelStd()
	case c.hasEnded():
		c.standard() // record the reason for which the context had already ended
		c.cancelStd()
	default:
		c.cancelled = true
	}
}

// hasEnded reports whether the parent or the deadline has ended the context. It is called
// while std is nil, so no method has noticed the end yet.
func (c *Context) hasEnded() bool {
	return c.parent.Err() != nil || !c.end.IsZero() && !time.Now().Before(c.end)
}

// standard returns std, which it creates on the first call. The caller holds mu.
func (c *Context) standard() context.Context {
	switch {
	case c.std != nil:
	case c.cancelled: // ended by Cancel, even if the parent has ended since
		c.std, c.cancelStd = context.WithCancel(context.WithoutCancel(c.parent))
		c.cancelStd()
	case c.end.IsZero():
		c.std, c.cancelStd = context.WithCancel(c.parent)
	default:
		c.std, c.cancelStd = context.WithDeadline(c.parent, c.end)
	}
	return c.std
}

// Until returns the same context as [context.WithDeadline], but saves a timer if it can.
// If ctx is a [Context] with a later deadline or none, and its timer has not been started,
// the new context is derived from the parent of ctx instead. The timer of ctx is then not
// started. Canceling ctx still cancels the new context.
func Until(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if c, ok := ctx.(*Context); ok {
		if limited, cancel := c.until(end); limited != nil {
			return limited, cancel
		}
	}
	return context.WithDeadline(ctx, end)
}

// until derives a context from c's parent instead of from c, so that c needs no timer.
// Canceling c cancels the new context too. until returns nil if the new context would not
// behave like one derived from c, or if c already has such a context.
func (c *Context) until(end time.Time) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.std != nil || c.cancelled || c.inner != nil || !c.end.IsZero() && !end.Before(c.end) {
		return nil, nil
	}
	limited, cancel := context.WithDeadline(c.parent, end)
	c.inner = &inner{outer: c, cancel: cancel}
	return limited, c.inner.end
}

// inner is a context that Until derived from the parent of another Context.
type inner struct {
	outer  *Context // the Context whose Cancel also ends this one
	cancel context.CancelFunc
}

// end cancels the context and detaches it from the Context that it was derived past.
func (in *inner) end() {
	in.cancel()
	c := in.outer
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == in { // false if end is called twice and Until has set another one in between
		c.inner = nil
	}
}
