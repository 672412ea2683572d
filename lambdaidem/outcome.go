package lambdaidem

import (
	"encoding/base64"
	"encoding/json"
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

// outcomeOf applies the outcome rule to a response. A rule of the user's gets a
// copy: what it changed would otherwise be stored and replayed, but not be in the
// first answer.
func (g *Guard) outcomeOf(r *Response) Outcome {
	if g.opts.Outcome == nil {
		return defaultOutcome(r, g.opts.Policy)
	}
	shown := r.clone()
	shown.policy = g.opts.Policy
	return g.opts.Outcome(shown)
}

// DefaultOutcome is the outcome rule of X1: 2xx and 3xx succeeded; 4xx failed;
// 408 Request Timeout, 425 Too Early, 429 Too Many Requests and 5xx released.
// A status that is no HTTP status (0, 99, 700) reaches the client as the
// gateway's own 5xx, so it is released too. So is the 409 of another guard that a
// handler passes on ([ErrInProgress], [ErrAttemptAbandoned]): it is a refusal of
// the moment. Of a response that a guard under policy [Hold] passed to
// Options.Outcome, a 5xx and what counts as one, and that 409, are uncertain (X2).
func DefaultOutcome(r *Response) Outcome { return defaultOutcome(r, r.policy) }

func defaultOutcome(r *Response, policy Policy) Outcome {
	switch {
	case serverFailed(r.Status), r.Status == http.StatusConflict && refusedForNow(r):
		if policy == Hold {
			return OutcomeUncertain
		}
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

// refusedForNow tells whether an answer is a guard's own refusal of the moment.
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

// outcomeOfError applies X2 to an error that a handler returned.
func (g *Guard) outcomeOfError(err error) Outcome {
	if o := g.marked(err); o != "" {
		return o
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}

// marked is the outcome that the marks in an error's tree stand for; empty if
// there is none. Of several marks the most careful counts. Where errors are
// joined, one without a mark may be of a call that happened: under Hold it makes
// the whole uncertain.
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
		case e.Code == ErrOutcomeUnknown: // of a guarded call inside, whatever its cause was marked as
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

// markWithin is the more careful mark inside a marked error. What Reject made
// there goes by the mark, not by its status.
func markWithin(err error) Outcome {
	if u := (*uncertainError)(nil); errors.As(err, &u) {
		return OutcomeUncertain
	}
	if p := (*permanentError)(nil); errors.As(err, &p) {
		return OutcomeFailed
	}
	return ""
}

// careful is the more careful of two marks.
func careful(a, b Outcome) Outcome {
	for _, o := range []Outcome{OutcomeUncertain, OutcomeFailed, OutcomeReleased, OutcomeSucceeded} {
		if a == o || b == o {
			return o
		}
	}
	return a + b // of Options.Outcome's own making, or none
}
