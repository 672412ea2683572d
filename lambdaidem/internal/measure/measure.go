// Package measure says what of an event is counted, so that all observers that
// count do it alike. Nothing that a client or a sender chose comes out of it: every
// text is one of few.
package measure

import (
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// None is the route of what has no template.
const None = "(none)"

// Other stands for a value of a later version, or of another's store.
const Other = "other"

// Sample is what one event adds to the metrics.
type Sample struct {
	Outcome string // Event.Kind, or Other
	Route   string // Event.Template, or None if that is blank

	// Of the one event that settles a call, so that no call is measured twice;
	// each is 0 in every other, and where there is none. What is below 0 counts as
	// none: a clock was set back.
	Call, Handler, Store time.Duration
	// Attempt is the number of the attempt that ran; 0 where none did.
	Attempt int

	// Of a store that failed: why, and which limit throttled it. Empty: it did not.
	Reason, Throttle string
}

// Of returns what an event adds.
func Of(e lambdaidem.Event) Sample {
	s := Sample{Outcome: known(e.Kind, Kinds), Route: e.Template}
	if strings.TrimSpace(s.Route) == "" {
		s.Route = None
	}
	if settles(e.Kind) {
		s.Call, s.Handler, s.Store = e.Duration, e.Handler, e.Store
	}
	if ran(e.Kind) {
		s.Attempt = e.Attempt
	}
	// One failure of the store may be told again by what follows from it.
	if e.Kind == lambdaidem.EventStoreError {
		s.Reason = known(e.Reason, Reasons)
		if e.Reason == lambdaidem.ReasonThrottled {
			s.Throttle = known(e.Throttle, Throttles)
		}
	}
	return s
}

// settles reports whether an event of that kind ends a call that was begun, and is
// the only such event of its call.
func settles(k lambdaidem.Kind) bool {
	switch k {
	case lambdaidem.EventReplayed, lambdaidem.EventInProgress, lambdaidem.EventAbandoned, lambdaidem.EventMismatch, lambdaidem.EventUnreadable:
		return true
	default:
		return ran(k)
	}
}

// ran reports whether an event of that kind ends a call whose handler ran.
func ran(k lambdaidem.Kind) bool {
	switch k {
	case lambdaidem.EventNew, lambdaidem.EventReleased, lambdaidem.EventUncertain, lambdaidem.EventAnswerLost:
		return true
	default:
		return false
	}
}

// Kinds, Reasons and Throttles are the values of Sample.Outcome, Sample.Reason and
// Sample.Throttle, but for Other and Unknown.
var (
	Kinds = []lambdaidem.Kind{lambdaidem.EventNew, lambdaidem.EventReplayed, lambdaidem.EventInProgress, lambdaidem.EventAbandoned, lambdaidem.EventMismatch,
		lambdaidem.EventKeyMissing, lambdaidem.EventKeyInvalid, lambdaidem.EventBypassed, lambdaidem.EventReleased, lambdaidem.EventUncertain, lambdaidem.EventLeaseLost,
		lambdaidem.EventTakenOver, lambdaidem.EventFailedOpen, lambdaidem.EventStoreError, lambdaidem.EventAnswerLost, lambdaidem.EventOutOfTime, lambdaidem.EventUnreadable,
		lambdaidem.EventNoPrincipal, lambdaidem.EventNeverStarted, lambdaidem.EventSwitchedOff}
	Reasons = []lambdaidem.Reason{lambdaidem.ReasonTimeout, lambdaidem.ReasonUnreachable, lambdaidem.ReasonThrottled, lambdaidem.ReasonConflict,
		lambdaidem.ReasonNoTable, lambdaidem.ReasonPermission, lambdaidem.ReasonTooLarge, lambdaidem.ReasonEncoding, lambdaidem.ReasonForeign, lambdaidem.ReasonInvalid,
		lambdaidem.ReasonKey}
	Throttles = []lambdaidem.Throttle{lambdaidem.ThrottleKeyRange, lambdaidem.ThrottleAccount, lambdaidem.ThrottleMaximum, lambdaidem.ThrottleProvisioned}
)

// Unknown stands for what the store did not say.
const Unknown = "unknown"

// known returns a value, if it is one of all.
func known[T ~string](value T, all []T) string {
	if value == "" {
		return Unknown
	}
	for _, one := range all {
		if value == one {
			return string(one)
		}
	}
	return Other
}
