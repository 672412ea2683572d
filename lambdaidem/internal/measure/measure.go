// Package measure converts an event of a guard to values for metrics. The observers of packages
// emf and otelobserver both use it, so that they count in the same way. Each string field of a
// [Sample] has a limited number of values, and no value is chosen by a client or by the sender of
// a message.
package measure

import (
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// None is the Sample.Route of an event without a route template.
const None = "(none)"

// Other replaces a value that this version does not know, such as a Reason that a store of
// another module returns.
const Other = "other"

// Sample has the values that one event adds to the metrics.
type Sample struct {
	Outcome string // Event.Kind, or Other
	Route   string // Event.Template, or None if that is blank

	// If the event gives the result of a call, as EventNew and EventReplayed do, Call is
	// Event.Duration, Handler is Event.Handler and Store is Event.Store. They are 0 for the call's
	// other events, so that each call is measured only once. They may be negative if the clock was
	// set back: ignore values that are not positive.
	Call, Handler, Store time.Duration
	// Attempt is Event.Attempt if the event is the result of a call whose handler ran, for example
	// EventNew. Otherwise Attempt is 0, so that no attempt is counted twice.
	Attempt int

	// Reason and Throttle say why a request to the store failed. Both are empty unless the
	// event is an EventStoreError. Throttle is also empty unless Reason is ReasonThrottled.
	Reason, Throttle string
}

// Of returns the sample for an event.
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
	// Other events may have the same store error as their cause, so count it only here.
	if e.Kind == lambdaidem.EventStoreError {
		s.Reason = known(e.Reason, Reasons)
		if e.Reason == lambdaidem.ReasonThrottled {
			s.Throttle = known(e.Throttle, Throttles)
		}
	}
	return s
}

// settles reports whether an event of this kind gives the result of a call. A call has at most
// one such event, so it is measured only once. A call that is refused before its record is read
// has no such event, and is not measured.
func settles(k lambdaidem.Kind) bool {
	switch k {
	case lambdaidem.EventReplayed, lambdaidem.EventInProgress, lambdaidem.EventAbandoned, lambdaidem.EventMismatch, lambdaidem.EventUnreadable:
		return true
	default:
		return ran(k)
	}
}

// ran reports whether an event of this kind is the result of a call that has run its handler, and
// was neither replayed nor refused.
func ran(k lambdaidem.Kind) bool {
	switch k {
	case lambdaidem.EventNew, lambdaidem.EventReleased, lambdaidem.EventUncertain, lambdaidem.EventAnswerLost:
		return true
	default:
		return false
	}
}

// Kinds, Reasons and Throttles list the values of Sample.Outcome, Sample.Reason and
// Sample.Throttle, except Other and Unknown.
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

// Unknown is the Sample.Reason or Sample.Throttle if the store did not give one.
const Unknown = "unknown"

// known returns value if it is in list. It returns Unknown for an empty value, and Other for any
// other value.
func known[T ~string](value T, list []T) string {
	if value == "" {
		return Unknown
	}
	for _, one := range list {
		if value == one {
			return string(one)
		}
	}
	return Other
}
