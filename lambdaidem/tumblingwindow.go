package lambdaidem

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
)

// unwindowed returns a function that calls h, except for an event of a tumbling window. For such an
// event, the function returns an error, because a guard can't maintain the window's state, which
// Lambda expects in the response. A guarded handler does not run again for the records that an
// earlier invocation has handled, so the state would lack these records.
//
// A response without the state would be worse than an error: Lambda treats such a response as a
// failed invocation too, but the log would not have the reason why the shard makes no progress.
func unwindowed[E, R any](window func(E) events.TimeWindowProperties, h func(context.Context, E) (R, error)) func(context.Context, E) (R, error) {
	return func(ctx context.Context, e E) (R, error) {
		if w := window(e); w.State != nil || w.ShardID != "" || w.IsFinalInvokeForWindow || w.IsWindowTerminatedEarly || !w.Window.End.IsZero() {
			var none R
			return none, errWindow
		}
		return h(ctx, e)
	}
}

var errWindow = errors.New("lambdaidem: the event source mapping has a tumbling window, which can't be guarded: " +
	"a record that is done runs no second time, so a window that Lambda rebuilds would miss it; " +
	"remove TumblingWindowInSeconds, or leave this handler unguarded")
