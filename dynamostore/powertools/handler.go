package powertools

import (
	"context"
	"errors"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Handler returns a handler that first looks for the answer that Powertools has stored for the
// event; see [Find]. If there is one, it is the handler's answer. Otherwise h runs.
//
// Pass the result to a guard. The guard then has its own record of the call when the handler looks,
// and stores the answer. A call that the guard lets through unguarded, such as a GET, runs h
// without a look-up.
//
//	guard.APIGatewayV2(powertools.Handler(records, selectOrder, createPayment))
//	lambdaidem.Handler(guard, "charge", key, powertools.Handler(records, selectCharge, charge))
//
// The function sel returns what the old function selected from an event. If it returns
// [ErrNoRecord], h runs without a look-up. If it returns another error, h does not run. The
// guard then releases its record, and an HTTP client receives the response of an error made by
// [lambdaidem.Reject], or else a 503.
func Handler[In, Out any](
	r *Records, sel func(context.Context, In) (Selection, error), h func(context.Context, In) (Out, error),
) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		if r.ended() || lambdaidem.RecordID(ctx) == "" {
			return h(ctx, in)
		}
		s, err := sel(ctx, in)
		switch {
		case errors.Is(err, ErrNoRecord):
			return h(ctx, in)
		case err != nil:
			return *new(Out), lambdaidem.Retryable(err)
		}
		answer, found, err := Find[Out](ctx, r, s)
		if err != nil || found {
			return answer, err
		}
		return h(ctx, in)
	}
}
