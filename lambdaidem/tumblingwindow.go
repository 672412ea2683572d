package lambdaidem

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
)

// unwindowed returns a function that calls h, but refuses an event of a tumbling window with an
// error. Lambda expects the window's state in the response to such an event. The state would lack
// the messages that an earlier invocation has handled, because the handler does not run for them
// again.
func unwindowed[E, R any](window func(E) events.TimeWindowProperties, h func(context.Context, E) (R, error)) func(context.Context, E) (R, error) {
	return func(ctx context.Context, e E) (R, error) {
		if w := window(e); w.State != nil || w.ShardID != "" || w.IsFinalInvokeForWindow || w.IsWindowTerminatedEarly || !w.Window.End.IsZero() {
			// Return an error, so that the log says why the invocation failed. Lambda would also
			// treat a response without the window's state as a failed invocation, but the log would
			// not say why.
			var none R
			return none, errWindow
		}
		return h(ctx, e)
	}
}

var errWindow = errors.New("lambdaidem: the event source mapping has a tumbling window, which can't be guarded: " +
	"a record that is done runs no second time, so a window that Lambda rebuilds would miss it; " +
	"remove TumblingWindowInSeconds, or leave this handler unguarded")
