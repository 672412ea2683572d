package powertools

import (
	"context"
	"errors"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Handler returns a handler that first looks for the answer that Powertools has stored for the
// event; see [Find]. If there is no such answer, h runs. Pass the returned handler to a guard,
// which stores the answer:
//
//	guard.APIGatewayV2(powertools.Handler(records, selectOrder, createPayment))
//	lambdaidem.Handler(guard, "charge", key, powertools.Handler(records, selectCharge, charge))
//
// The function sel returns what the old function, which used Powertools, selected from an event. If
// sel returns [ErrNoRecord], h runs without a look-up. If sel returns another error, h does not
// run, and the guard releases its record. An HTTP client then receives the error's response if
// [lambdaidem.Reject] made the error, and otherwise a 503.
//
// If the guard lets a call through unguarded, such as a GET, or if Options.Until has passed, h runs
// without a look-up.
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
