// Package deadline makes contexts that end at a deadline, and have a timer for it
// only once somebody waits.
//
// A guarded request goes through several: of the claim, of the handler, of the
// completion. Almost always each is over long before its deadline, and nobody asked.
// A timer costs little to make but not to start: where it is the process's next one,
// a sleeping thread is woken for it, in the middle of the request.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context is what [context.WithDeadline] makes, with a timer only once there is a
// caller of Done, or a context made of this one; see [Until] for one that needs none
// even then. Err is exact without one. Where its parent and its deadline have both
// ended it before anybody looked, it says that its parent did.
//
// A Context may be part of something larger: Begin makes it one. Its methods may be
// called from several goroutines at once.
type Context struct {
	parent context.Context
	end    time.Time // zero: it has no deadline but its parent's

	mu        sync.Mutex
	std       context.Context // the standard library's that does the rest; nil: nobody has waited yet, or seen the end
	cancelStd context.CancelFunc
	cancelled bool   // before there was std
	inner     *inner // the context that Until made; nil: there is none
}

var _ context.Context = (*Context)(nil)

// With returns a context that ends at end, at the latest; a zero end is none. Cancel
// must be called.
func With(parent context.Context, end time.Time) *Context {
	c := new(Context)
	c.Begin(parent, end)
	return c
}

// Begin makes the zero Context one as [With] does. It is called once, before anything
// else.
func (c *Context) Begin(parent context.Context, end time.Time) {
	c.parent, c.end = parent, end
	if last, ok := parent.Deadline(); ok && last.Before(end) {
		c.end = time.Time{}
	}
}

// Deadline returns when the context ends.
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

// Err returns what ended the context, if it has ended.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.std != nil:
		return c.std.Err()
	case c.cancelled:
		return context.Canceled
	case c.isOver():
		return c.standard().Err() // the same from now on
	}
	return nil
}

// Value returns the parent's value.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	from := c.std
	switch {
	case from != nil:
	case c.cancelled: // context.Cause must not find the parent's
		from = c.standard()
	default:
		from = c.parent
	}
	c.mu.Unlock()
	return from.Value(key)
}

// Cancel ends the context, and what was made of it.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		c.inner.cancel()
	}
	switch {
	case c.std != nil:
		c.cancelStd()
	case c.isOver():
		c.standard() // what had ended it before
		c.cancelStd()
	default:
		c.cancelled = true
	}
}

// isOver tells whether the context has ended, though nobody has seen it yet.
func (c *Context) isOver() bool {
	return c.parent.Err() != nil || !c.end.IsZero() && !time.Now().Before(c.end)
}

// standard returns the context of the standard library that stands for this one.
func (c *Context) standard() context.Context {
	switch {
	case c.std != nil:
	case c.cancelled: // whatever has happened to its parent since
		c.std, c.cancelStd = context.WithCancel(context.WithoutCancel(c.parent))
		c.cancelStd()
	case c.end.IsZero():
		c.std, c.cancelStd = context.WithCancel(c.parent)
	default:
		c.std, c.cancelStd = context.WithDeadline(c.parent, c.end)
	}
	return c.std
}

// Until is [context.WithDeadline]. If ctx is a [Context] that ends later, and nobody
// waits for that, it is not waited for here either: one timer is enough.
func Until(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if c, ok := ctx.(*Context); ok {
		if limited, cancel := c.until(end); limited != nil {
			return limited, cancel
		}
	}
	return context.WithDeadline(ctx, end)
}

// until makes a context past this one, of its parent. Cancel still ends it. It returns
// nil where that would not be the same.
func (c *Context) until(end time.Time) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.std != nil || c.cancelled || c.inner != nil || !c.end.IsZero() && !end.Before(c.end) {
		return nil, nil
	}
	limited, cancel := context.WithDeadline(c.parent, end)
	c.inner = &inner{of: c, cancel: cancel}
	return limited, c.inner.end
}

// inner is a context that Until made past another one.
type inner struct {
	of     *Context
	cancel context.CancelFunc
}

func (in *inner) end() {
	in.cancel()
	c := in.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == in { // it may be another one by now
		c.inner = nil
	}
}
