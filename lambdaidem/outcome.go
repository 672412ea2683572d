package lambdaidem

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
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

// orUncertain returns o, or OutcomeUncertain if o is not one of the constants.
func (o Outcome) orUncertain() Outcome {
	switch o {
	case OutcomeSucceeded, OutcomeFailed, OutcomeReleased, OutcomeUncertain:
		return o
	}
	return OutcomeUncertain
}

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
//   - below 200 or above 599: like a 5xx, because the gateway sends a 5xx to the client instead
//   - 409 with the problem document of [ErrInProgress] or [ErrAttemptAbandoned], passed on from
//     another guarded service: like a 5xx, because a retry may succeed there
//
// DefaultOutcome knows the guard's policy only if r is the response that a guard has passed to
// Options.Outcome. For any other response it assumes [Rerun].
//
// A guarded call that the handler made may change the outcome; see Options.Outcome.
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
	code := problemCode(r)
	return code == ErrInProgress || code == ErrAttemptAbandoned
}

// problemCode returns the code of the problem document in the body of r, or "" if the body is no
// such document.
func problemCode(r *Response) Code {
	body := []byte(r.Body)
	if r.Base64 {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return ""
		}
	}
	var doc struct {
		Code Code `json:"code"`
	}
	_ = json.Unmarshal(body, &doc) // after an error, the code is empty
	return doc.Code
}
