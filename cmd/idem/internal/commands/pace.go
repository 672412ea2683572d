package commands

import (
	"context"
	"math"

	"golang.org/x/time/rate"
)

// pace keeps to a rate of capacity units a second. What a request consumed is known
// when it is over, so the next one waits for it.
func pace(perSecond float64) func(context.Context, float64) error {
	burst := max(1, int(math.Ceil(perSecond)))
	limit := rate.NewLimiter(rate.Limit(perSecond), burst)
	return func(ctx context.Context, units float64) error {
		for left := int(math.Ceil(units)); left > 0; left -= burst {
			if err := limit.WaitN(ctx, min(left, burst)); err != nil {
				if cause := context.Cause(ctx); cause != nil {
					return cause //nolint:wrapcheck // the caller's own
				}
				return err //nolint:wrapcheck // the deadline would pass before
			}
		}
		return nil
	}
}
