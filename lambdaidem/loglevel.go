package lambdaidem

import (
	"errors"
	"log/slog"
)

// level returns the level at which an event of this kind, with the error err, is logged.
func (k Kind) level(err error) slog.Level {
	switch {
	case k.warns(), k == EventNew && isPermanent(err), k == EventReleased && isWriteRejected(err):
		return slog.LevelWarn
	case k == EventBypassed: // sent for every GET
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// warns reports whether an event of this kind is logged as a warning, whatever its error is.
func (k Kind) warns() bool {
	switch k {
	case EventAbandoned, EventUncertain, EventLeaseLost, EventTakenOver, EventFailedOpen,
		EventStoreError, EventAnswerLost, EventOutOfTime, EventUnreadable, EventNoPrincipal, EventNeverStarted, EventSwitchedOff:
		return true
	default:
		return false
	}
}

// isPermanent reports whether the handler marked err as Permanent. Such an error is logged as a
// warning and not at a lower level, because the log is the only place that has the whole error. The
// record and the client get at most the error's text.
func isPermanent(err error) bool { return hasOwn[*permanentError](err) }

// isWriteRejected reports whether err shows a mistake in an enlisted write: the write is
// invalid, or its condition failed and the handler has not said what the failure means.
func isWriteRejected(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && (e.Code == ErrConditionFailed || e.Code == ErrWriteInvalid)
}
