package lambdaidem

import (
	"errors"
	"net/http"
)

// Outcome is what becomes of an attempt's answer (X1).
type Outcome string

// The outcomes. Only the first two are ever stored.
const (
	OutcomeSucceeded Outcome = "succeeded" // stored, replayed
	OutcomeFailed    Outcome = "failed"    // stored, replayed, marked as a deterministic failure
	OutcomeReleased  Outcome = "released"  // not stored: no effect happened, a retry runs again
	OutcomeUncertain Outcome = "uncertain" // not stored: the lease is kept, and its end decides (L6)
)

// Policy says what becomes of a record whose attempt died, or ended uncertain,
// after unknown effects (L6).
type Policy string

// The policies.
const (
	// Rerun lets the next request run the handler again, with a higher attempt
	// number: outside effects are at least once (G2). It is the default.
	Rerun Policy = "rerun"
	// Hold answers 409 [ErrAttemptAbandoned] until an operator decides: outside
	// effects are at most once (G2). A 5xx, a panic and every error without a
	// mark are uncertain by default under it; [Retryable] says that nothing
	// happened. A record that one of two guards began under Hold is held by the
	// other too.
	Hold Policy = "hold"
)

// outcomeOf applies the outcome rule to a response.
func (g *Guard) outcomeOf(r *Response) Outcome {
	r.policy = g.opts.Policy
	if g.opts.Outcome != nil {
		return g.opts.Outcome(r)
	}
	return DefaultOutcome(r)
}

// DefaultOutcome is the outcome rule of X1: 2xx and 3xx succeeded; 4xx failed;
// 408 Request Timeout, 425 Too Early, 429 Too Many Requests and 5xx released.
// A status that is no HTTP status (0, 99, 700) reaches the client as the
// gateway's own 5xx, so it is released too. Of a response that a guard under
// policy [Hold] passed to Options.Outcome, a 5xx and what counts as one are
// uncertain (X2).
func DefaultOutcome(r *Response) Outcome {
	switch {
	case serverFailed(r.Status) && r.policy == Hold:
		return OutcomeUncertain
	case serverFailed(r.Status):
		return OutcomeReleased
	case r.Status < 400:
		return OutcomeSucceeded
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly, r.Status == http.StatusTooManyRequests:
		return OutcomeReleased
	default:
		return OutcomeFailed
	}
}

// serverFailed tells whether a client sees a 5xx.
func serverFailed(status int) bool { return status < 200 || status > 499 }

// outcomeOfError applies X2 to an error that a handler returned. Where it has
// several marks, the most careful counts.
func (g *Guard) outcomeOfError(err error) Outcome {
	if u := (*uncertainError)(nil); errors.As(err, &u) {
		return OutcomeUncertain
	}
	if p := (*permanentError)(nil); errors.As(err, &p) {
		return OutcomeFailed
	}
	if r := (*retryableError)(nil); errors.As(err, &r) {
		return OutcomeReleased
	}
	if own := (*Error)(nil); errors.As(err, &own) && own.rejected {
		return g.outcomeOf(&Response{Status: own.Status})
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}
