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

// The outcomes. The guard stores an answer only if its outcome is OutcomeSucceeded or
// OutcomeFailed.
const (
	OutcomeSucceeded Outcome = "succeeded" // stored and replayed
	OutcomeFailed    Outcome = "failed"    // stored and replayed: every retry would fail the same way
	OutcomeReleased  Outcome = "released"  // not stored: a retry runs the handler again at once
	OutcomeUncertain Outcome = "uncertain" // not stored: the effects are unknown, and the Policy decides what a retry does
)

// Policy decides what the guard does with a record after a run of its handler has died or
// has ended with [OutcomeUncertain]. Nobody then knows which effects that run had. The guard
// applies the Policy to the next request that arrives after the run's lease has ended.
type Policy string

// The policies.
const (
	// Rerun lets the next request run the handler again after a run whose effects are
	// unknown. The new run has a higher attempt number. Effects happen at least once,
	// except enlisted writes (see [Tx]), which happen exactly once. Rerun is the default.
	Rerun Policy = "rerun"
	// Hold lets no later request run the handler after a run whose effects are unknown.
	// Every such request gets 409 [ErrAttemptAbandoned] until an operator decides about
	// the record. Effects happen at most once.
	//
	// Under Hold, the default outcome of a 5xx, a panic, and an error that was neither
	// marked nor made by [Reject] is [OutcomeUncertain]. [Retryable] marks an error after
	// which nothing has happened. A record that was acquired under Hold also waits for an
	// operator if the next request reaches a guard with policy Rerun.
	Hold Policy = "hold"
)

// outcomeOf returns the outcome of a response. The function Options.Outcome decides the outcome.
// If that option is nil, the rules of DefaultOutcome apply. Options.Outcome gets a copy of the
// response: if the function changed the original, a replay would differ from the answer that the
// first caller receives.
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
// The guard may change the outcome that DefaultOutcome or Options.Outcome returns. It does so
// if a guarded call that the handler made was refused and may succeed later, or if nobody
// knows whether such a call had its effect; see Options.Outcome.
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

// serverFailed reports whether the client sees a 5xx. If a status is not between 200 and 599,
// the gateway sends a 5xx instead.
func serverFailed(status int) bool { return status < 200 || status > 499 }

// refusedForNow reports whether the body of the response is a problem document with the code
// ErrInProgress or ErrAttemptAbandoned. With these codes, a guard refuses a request only for
// now. A handler may pass on such a document from another service.
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

// outcomeOfError returns the outcome of an error that a handler returned. The error itself may
// ask for an outcome, for example because Permanent has marked it; see outcomeOfMarks.
// Otherwise its outcome is uncertain under policy Hold, and released under policy Rerun.
//
// innerFailure is the outcome of one special error: the stored failure of an inner call, that
// is, of a guarded call that the handler made. innerFailure is normally OutcomeFailed, because
// every retry gets the same failure again. For the handler of a message, innerFailure is "", so
// that the stored failure asks for no outcome: a failed message is not stored, and must run
// again.
func (g *Guard) outcomeOfError(err error, innerFailure Outcome) Outcome {
	if o := g.outcomeOfMarks(err, innerFailure); o != "" {
		return o
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}

// outcomeOfMarks returns the outcome that err asks for, or "" if it asks for none. These errors
// ask for an outcome:
//
//   - An error that Permanent, Uncertain or Retryable has marked.
//   - An error made by Reject. It has the outcome of a response with its status.
//   - An ErrOutcomeUnknown. Its outcome is uncertain.
//   - The stored failure of an inner call, that is, of a guarded call that the handler made. It
//     has the outcome innerFailure; see outcomeOfError.
//
// outcomeOfMarks also examines the errors that err wraps. If they ask for different outcomes,
// outcomeOfBoth chooses one. Policy Hold has one more rule, for an err that joins several errors:
// if one of these asks for no outcome, the result is uncertain. That error may come from a call
// that had an effect.
func (g *Guard) outcomeOfMarks(err error, innerFailure Outcome) Outcome {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil, *panicError: // the value of a panic is no mark
		return ""
	case *passedOn:
		if e.stored {
			return innerFailure
		}
		// e is the error of a guarded call that the handler made. A mark in e, such as
		// Permanent, is about that call and not about the handler, so e asks for no
		// outcome. attempt.settle decides how the result of that call changes the outcome
		// of the handler.
		return ""
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

// outcomeWithinMark returns the outcome that err asks for, or "" if err asks for none. err is
// the error inside a mark, that is, the argument of Permanent or Retryable. The mark has an
// outcome of its own; outcomeOfMarks combines the two outcomes.
//
//   - If err wraps an Uncertain error or ErrOutcomeUnknown, the result is OutcomeUncertain.
//   - Otherwise, if err wraps a Permanent error, the result is OutcomeFailed. The Permanent
//     error of an inner call does not count, because it describes only that call.
//   - In all other cases the result is "". The status of an error made by Reject does not count,
//     so that the application can change the outcome of such an error by a mark.
func outcomeWithinMark(err error) Outcome {
	if u := (*uncertainError)(nil); errors.As(err, &u) || errors.Is(err, ErrOutcomeUnknown) {
		return OutcomeUncertain
	}
	if hasMark[*permanentError](err) {
		return OutcomeFailed
	}
	return ""
}

// hasMark reports whether err, or an error that it wraps, is an M. M is the type of a mark, such
// as *permanentError. hasMark does not look into the error of an inner call, because the marks
// in that error describe only the inner call.
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

// outcomeOfBoth returns the one of two outcomes that takes precedence: uncertain comes before
// failed, failed before released, and released before succeeded. "" means no outcome.
func outcomeOfBoth(a, b Outcome) Outcome {
	for _, o := range []Outcome{OutcomeUncertain, OutcomeFailed, OutcomeReleased, OutcomeSucceeded} {
		if a == o || b == o {
			return o
		}
	}
	return a + b // both are "", or Options.Outcome has returned an invalid one
}
