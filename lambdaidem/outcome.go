package lambdaidem

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
)

// Outcome is what becomes of a handler's answer and of its record.
type Outcome string

// The outcomes. Only the first two are ever stored.
const (
	OutcomeSucceeded Outcome = "succeeded" // stored and replayed
	OutcomeFailed    Outcome = "failed"    // stored and replayed: every retry would fail the same way
	OutcomeReleased  Outcome = "released"  // not stored: nothing happened, and a retry runs the handler at once
	OutcomeUncertain Outcome = "uncertain" // not stored: something may have happened, and the Policy decides when the lease has ended
)

// Policy says what happens when the lease of an attempt ends that died or was uncertain.
// Nobody knows which effects it had.
type Policy string

// The policies.
const (
	// Rerun lets the next request run the handler again, with a higher attempt number.
	// Effects outside the transaction happen at least once. Rerun is the default.
	Rerun Policy = "rerun"
	// Hold refuses every request with 409 [ErrAttemptAbandoned] until an operator
	// decides. Effects outside the transaction happen at most once. Under Hold a
	// 5xx, a panic and an error without a mark are uncertain by default; [Retryable]
	// marks an error after which nothing has happened. A record that was begun under
	// Hold is held by guards with the other policy too.
	Hold Policy = "hold"
)

// outcomeOf returns the outcome of a response. Options.Outcome gets a copy. If it could
// change the response itself, retries would replay another answer than the first caller
// receives.
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
// A 409 with the JSON of [ErrInProgress] or [ErrAttemptAbandoned] counts as a 5xx,
// because it may be the refusal of a guard in another service, and a retry may find the
// work done.
//
// DefaultOutcome knows the policy only of a response that a guard has passed to
// Options.Outcome.
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

// refusedForNow reports whether the response is a guard's refusal of a call that a retry
// may find done.
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

// outcomeOfError returns the outcome of an error that a handler returned.
func (g *Guard) outcomeOfError(err error) Outcome {
	if o := g.marked(err); o != "" {
		return o
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}

// marked returns the outcome that the marks of an error and of the errors that it wraps
// stand for, or "" if there is no mark. Of several marks, the most careful one counts. An
// error without a mark that is joined with others may be that of a call that had its
// effect, so under Hold it makes the outcome uncertain.
func (g *Guard) marked(err error) Outcome {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil, *passedOn:
		return ""
	case *uncertainError:
		return OutcomeUncertain
	case *permanentError:
		return careful(OutcomeFailed, markWithin(e.err))
	case *retryableError:
		return careful(OutcomeReleased, markWithin(e.err))
	case *Error:
		switch {
		case e == nil:
			return ""
		case e.Code == ErrOutcomeUnknown: // of a call inside, whatever mark its cause has
			return OutcomeUncertain
		case e.replayed && e.Code != ErrAnswerUnavailable: // of a Do inside: every retry meets it again
			return OutcomeFailed
		case e.rejected:
			return g.outcomeOf(&Response{Status: e.Status})
		}
		return g.marked(e.Err)
	case interface{ Unwrap() error }:
		return g.marked(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all Outcome
		for _, one := range e.Unwrap() {
			o := g.marked(one)
			if o == "" && one != nil && g.opts.Policy == Hold {
				return OutcomeUncertain
			}
			all = careful(all, o)
		}
		return all
	}
	return ""
}

// markWithin returns the outcome of the most careful mark inside err, which itself is inside
// a mark: OutcomeUncertain, also if err wraps ErrOutcomeUnknown; OutcomeFailed; or "". An
// error that Reject made is not a mark here. The mark around it decides, not its status.
func markWithin(err error) Outcome {
	if u := (*uncertainError)(nil); errors.As(err, &u) || errors.Is(err, ErrOutcomeUnknown) {
		return OutcomeUncertain
	}
	if p := (*permanentError)(nil); errors.As(err, &p) {
		return OutcomeFailed
	}
	return ""
}

// careful returns the more careful of the outcomes of two marks.
func careful(a, b Outcome) Outcome {
	for _, o := range []Outcome{OutcomeUncertain, OutcomeFailed, OutcomeReleased, OutcomeSucceeded} {
		if a == o || b == o {
			return o
		}
	}
	return a + b // of Options.Outcome's own making, or none
}
