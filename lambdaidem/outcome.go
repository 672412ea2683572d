package lambdaidem

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

// Outcome says what happens to a handler's answer and to its record after the handler has
// returned.
type Outcome string

// The outcomes. Only the first two are ever stored.
const (
	OutcomeSucceeded Outcome = "succeeded" // stored and replayed
	OutcomeFailed    Outcome = "failed"    // stored and replayed: every retry would fail the same way
	OutcomeReleased  Outcome = "released"  // not stored: nothing happened, and a retry runs the handler at once
	OutcomeUncertain Outcome = "uncertain" // not stored: something may have happened, and once the lease has ended, the Policy decides what follows
)

// Policy says what the guard does with a record whose attempt died or was uncertain, once
// the attempt's lease has ended. It is then unknown which effects the attempt had.
type Policy string

// The policies.
const (
	// Rerun lets the next request run the handler again, with a higher attempt number.
	// Effects outside the transaction happen at least once. Rerun is the default.
	Rerun Policy = "rerun"
	// Hold refuses every request with 409 [ErrAttemptAbandoned] until an operator
	// decides. Effects outside the transaction happen at most once. Under Hold, a 5xx,
	// a panic, and an error that no function of this package has marked are uncertain by
	// default. [Retryable] marks an error after which nothing has happened. If a record
	// was created under Hold, guards with policy Rerun hold it too.
	Hold Policy = "hold"
)

// outcomeOf returns the outcome of a response by Options.Outcome, or by the default rule.
// Options.Outcome gets a copy of the response. If it changed the original, a replay would
// differ from the answer that the first caller receives.
func (g *Guard) outcomeOf(r *Response) Outcome {
	if g.opts.Outcome == nil {
		return defaultOutcome(r, g.opts.Policy)
	}
	shown := r.clone()
	shown.policy = g.opts.Policy
	return g.opts.Outcome(shown)
}

// DefaultOutcome returns the outcome of a response by its status:
//
//   - 2xx and 3xx: succeeded
//   - 408 Request Timeout, 425 Too Early and 429 Too Many Requests: released
//   - other 4xx: failed
//   - 5xx: released, or uncertain under policy [Hold]
//
// A status that is not between 200 and 499 counts as a 5xx, because the gateway sends
// one to the client instead.
//
// A 409 with the problem document of [ErrInProgress] or [ErrAttemptAbandoned] counts as a
// 5xx. The handler may have passed on the refusal of a guard in another service, and a
// retry may succeed there.
//
// DefaultOutcome knows the guard's policy only if r is the response that a guard has passed
// to Options.Outcome. For any other response it assumes [Rerun].
//
// If the handler made guarded calls that are not settled, the guard may change the
// outcome that DefaultOutcome or Options.Outcome returns; see Options.Outcome.
func DefaultOutcome(r *Response) Outcome { return defaultOutcome(r, r.policy) }

func defaultOutcome(r *Response, policy Policy) Outcome {
	switch {
	case 200 <= r.Status && r.Status < 400:
		return OutcomeSucceeded
	case asksForRetry(r.Status):
		return OutcomeReleased
	case serverFailed(r.Status), r.Status == http.StatusConflict && refusedForNow(r):
		if policy == Hold {
			return OutcomeUncertain
		}
		return OutcomeReleased
	default:
		return OutcomeFailed
	}
}

// asksForRetry reports whether a 4xx tells the client to send the same request again later.
func asksForRetry(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return false
}

// serverFailed reports whether the client sees a 5xx.
func serverFailed(status int) bool { return status < 200 || status > 499 }

// refusedForNow reports whether the body of the response is a guard's problem document with
// ErrInProgress or ErrAttemptAbandoned. A retry of such a call may succeed.
func refusedForNow(r *Response) bool {
	body := []byte(r.Body)
	if r.Base64 {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return false
		}
	}
	var doc struct {
		Code Code `json:"code"`
	}
	return json.Unmarshal(body, &doc) == nil && (doc.Code == ErrInProgress || doc.Code == ErrAttemptAbandoned)
}

// outcomeOfError returns the outcome of an error that a handler returned. innerFailure is the
// outcome of an error that is the stored failure of an inner call. It is OutcomeFailed,
// because every retry gets that error again. For a handler of messages it is "", so that the
// error counts as one without a mark: a failed message is not stored, and must run again.
func (g *Guard) outcomeOfError(err error, innerFailure Outcome) Outcome {
	if o := g.outcomeOfMarks(err, innerFailure); o != "" {
		return o
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}

// outcomeOfMarks returns the outcome that err asks for, or "" if it asks for none.
// Permanent, Uncertain and Retryable mark an error with an outcome. An error made by Reject
// has the outcome of its status. outcomeOfMarks also examines the errors that err wraps. If
// they ask for different outcomes, outcomeOfBoth chooses one.
//
// If err joins several errors, policy Hold makes the outcome uncertain as soon as one of
// them has no mark: that error may come from a call that had an effect.
func (g *Guard) outcomeOfMarks(err error, innerFailure Outcome) Outcome {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil, *panicError: // the value of a panic is no mark
		return ""
	case *passedOn:
		if e.stored {
			return innerFailure
		}
		return "" // only the handler knows what its error means; see also attempt.settle
	case *uncertainError:
		return OutcomeUncertain
	case *permanentError:
		return outcomeOfBoth(OutcomeFailed, outcomeWithinMark(e.err))
	case *retryableError:
		return outcomeOfBoth(OutcomeReleased, outcomeWithinMark(e.err))
	case *Error:
		switch {
		case e == nil:
			return ""
		case e.Code == ErrOutcomeUnknown: // a guarded call inside the handler may have had effects
			return OutcomeUncertain
		case e.replayed && e.Code != ErrAnswerUnavailable: // the stored failure of an inner call
			return innerFailure
		case e.rejected:
			return g.outcomeOf(&Response{Status: e.Status})
		}
		return g.outcomeOfMarks(e.Err, innerFailure)
	case interface{ Unwrap() error }:
		return g.outcomeOfMarks(e.Unwrap(), innerFailure)
	case interface{ Unwrap() []error }:
		var all Outcome
		for _, one := range e.Unwrap() {
			o := g.outcomeOfMarks(one, innerFailure)
			if o == "" && one != nil && g.opts.Policy == Hold {
				return OutcomeUncertain
			}
			all = outcomeOfBoth(all, o)
		}
		return all
	}
	return ""
}

// outcomeWithinMark returns the outcome of the marks inside err, for an err that is
// itself inside a mark. It is OutcomeUncertain if err wraps an Uncertain error or
// ErrOutcomeUnknown, else OutcomeFailed if err wraps a Permanent error, else "". The
// status of an error made by Reject does not count, because the mark around that error
// decides. For the same reason, a Permanent error of an inner call does not count.
func outcomeWithinMark(err error) Outcome {
	if u := (*uncertainError)(nil); errors.As(err, &u) || errors.Is(err, ErrOutcomeUnknown) {
		return OutcomeUncertain
	}
	if hasMark[*permanentError](err) {
		return OutcomeFailed
	}
	return ""
}

// hasMark reports whether err or an error that it wraps has the type M, which is that of a
// mark. It ignores the errors of inner calls.
func hasMark[M error](err error) bool {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *passedOn:
		return false
	case M:
		return true
	case interface{ Unwrap() error }:
		return hasMark[M](e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), hasMark[M])
	}
	return false
}

// outcomeOfBoth returns the outcome that applies if both a and b do: uncertain comes before
// failed, failed before released, and released before succeeded. "" means no outcome.
func outcomeOfBoth(a, b Outcome) Outcome {
	for _, o := range []Outcome{OutcomeUncertain, OutcomeFailed, OutcomeReleased, OutcomeSucceeded} {
		if a == o || b == o {
			return o
		}
	}
	return a + b // both are "", or one is an invalid value of Options.Outcome
}
