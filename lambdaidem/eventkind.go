package lambdaidem

// Kind is the kind of an [Event]: what has happened to a call.
type Kind string

// The kinds of events. [SlogObserver] logs the kinds marked (!) as warnings.
const (
	EventNew          Kind = "new"           // the handler ran, and its answer is stored
	EventReplayed     Kind = "replayed"      // a stored answer was returned without running the handler
	EventInProgress   Kind = "in_progress"   // refused: another attempt is running
	EventAbandoned    Kind = "abandoned"     // (!) refused: an attempt died, and an operator must decide about the record
	EventMismatch     Kind = "mismatch"      // refused: the key was used with another payload, or may have been
	EventKeyMissing   Kind = "key_missing"   // refused: there is no key
	EventKeyInvalid   Kind = "key_invalid"   // refused: the key or the request is malformed or too large
	EventBypassed     Kind = "bypassed"      // ran unguarded because of its method, Skip or KeyOptional
	EventReleased     Kind = "released"      // the handler ran, its answer is not stored, and a retry runs it again
	EventUncertain    Kind = "uncertain"     // (!) the attempt may have had effects; once its lease has ended, the policy decides what happens
	EventLeaseLost    Kind = "lease_lost"    // (!) another attempt took over the record before this one had finished
	EventTakenOver    Kind = "taken_over"    // (!) this attempt took over the record of an attempt that died
	EventFailedOpen   Kind = "failed_open"   // (!) a store request failed; the handler runs without a lease (Options.FailOpen)
	EventStoreError   Kind = "store_error"   // (!) a store request failed; see Event.Reason
	EventAnswerLost   Kind = "answer_lost"   // (!) the handler ran, but its answer could not be stored; every retry gets 500
	EventOutOfTime    Kind = "out_of_time"   // (!) too little time was left to run the handler, or an optimistic handler returned too late
	EventUnreadable   Kind = "unreadable"    // (!) the record is damaged or was written by another tool, or its answer can't be decoded
	EventNoPrincipal  Kind = "no_principal"  // (!) refused: the caller could not be identified
	EventNeverStarted Kind = "never_started" // (!) the handler did not start, but its record may be in progress, because the release failed
	EventSwitchedOff  Kind = "switched_off"  // (!) ran unguarded because the environment variable SwitchOff is set
)

// kind returns the kind of event to send for a request that is refused with code c.
func (c Code) kind() Kind {
	switch c {
	case ErrKeyMissing:
		return EventKeyMissing
	case ErrKeyInvalid, ErrRequestInvalid, ErrBodyTooLarge, ErrBodyUnknown, ErrHeadersTooMany, ErrURITooLong:
		return EventKeyInvalid
	case ErrNotBegun:
		return EventOutOfTime
	default:
		return EventNoPrincipal
	}
}

// keyKind returns the kind of event that the guard reports when it refuses a call because the key is
// missing or invalid. The parameter e is the refusal.
func keyKind(e *Error) Kind {
	if e.Code == ErrKeyMissing {
		return EventKeyMissing
	}
	return EventKeyInvalid
}
