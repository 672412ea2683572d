package commands

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/time/rate"
)

// The bounds of --rate, in capacity units or requests a second.
const (
	leastRate = 0.001 // one unit in 17 minutes
	mostRate  = 1e9
)

// checkRate returns an error if perSecond, the value of --rate, is out of bounds.
func checkRate(perSecond float64) error {
	if perSecond >= leastRate && perSecond <= mostRate { // false if perSecond is NaN
		return nil
	}
	return fmt.Errorf("--rate is %v; it must be from %v to %.0f a second", perSecond, leastRate, float64(mostRate))
}

// pace returns a function that limits capacity units to perSecond. The function is called after
// each request with the units that the request consumed, and waits until the rate allows them. The
// units of the first second pass without waiting. perSecond must pass checkRate.
func pace(perSecond float64) func(context.Context, float64) error {
	burst := max(1, int(math.Ceil(perSecond)))
	limit := rate.NewLimiter(rate.Limit(perSecond), burst)
	return func(ctx context.Context, units float64) error {
		for left := int(math.Ceil(units)); left > 0; left -= burst {
			if err := limit.WaitN(ctx, min(left, burst)); err != nil {
				if cause := context.Cause(ctx); cause != nil {
					return cause //nolint:wrapcheck // the cause given by whoever canceled ctx
				}
				return err //nolint:wrapcheck // the context's deadline is before the end of the wait
			}
		}
		return nil
	}
}
