package lambdaidem

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// timeToBegin returns a function that returns an error if too little time is left to begin another
// message. If the invocation timed out, it could not report which messages failed. A message may
// begin if at least Options.MinRunTime plus Options.Reserve is left.
func (b *messageGuard[E, M]) timeToBegin(ctx context.Context) func() error {
	deadline, limited := ctx.Deadline()
	if !limited {
		return ctx.Err
	}
	left := time.Until(deadline)
	need := b.g.opts.MinRunTime + b.g.opts.reserveOf(left)
	if need > left-left/10 {
		// Hardly any message would begin, because need is more than nine tenths of the time that is
		// left. The messages would end up in the dead-letter queue. So let messages begin in the
		// first half of that time.
		need = left / 2
		if b.g.opts.MinRunTime > defaultMinRunTime || b.g.opts.Reserve > 0 {
			b.shortOnce.Do(func() {
				slog.Default().WarnContext(ctx, "no invocation has Options.MinRunTime and Reserve left, so messages begin in the first half of its time; "+
					"raise the function's timeout above their sum, or lower them", "min_run_time", b.g.opts.MinRunTime, "reserve", b.g.opts.Reserve, "left", left)
			})
		}
	}
	return func() error {
		if time.Until(deadline) < need {
			return errLate
		}
		return ctx.Err()
	}
}

var errLate = errors.New("too little time is left of the invocation")
