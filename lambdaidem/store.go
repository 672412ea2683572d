package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Store keeps one record per idempotency key. It has no policy: every verb
// returns the record as it now stands, and the [Guard] decides what follows.
// Time and randomness come in through the call, so a store reads no clock.
//
// The package lambdaidem/storetest holds the suite that every Store must pass.
//
// A record whose Expires has passed at the call's now, and on which no lease is
// live, is absent for every verb, whether or not the database has deleted it
// yet: see [Record.GoneAt]. It must not be deleted before [KeptAfterExpiry] has
// passed since then, because a call made before it expired may still be on its way.
//
// Errors are *[StoreError], but for [ErrLeaseLost]. A verb that could not learn
// whether its write happened says so with a StoreError whose NotApplied is
// false.
type Store interface {
	// Acquire takes the lease on a record.
	//
	// With claim.Over nil it MUST write the record only if there is none,
	// with attempt number 1. With claim.Over set it MUST write only over
	// exactly that record: same token, same state, same lease end, with
	// the attempt number after it; it never creates a record then, and never
	// takes over a completed one. The claim's invocation replaces the
	// record's, and the record's last failure is erased.
	//
	// It returns the record as it now stands: the lease is the caller's exactly
	// when that record is in progress under claim.Token, which is also how a
	// lost reply is recognised. A refusal is not an error. If the record
	// is gone by the time of the refusal, the answer is the zero Record.
	Acquire(ctx context.Context, claim Claim) (Record, error)

	// Complete stores the result, if the record is in progress under the
	// lease's token, however late. It succeeds too if the record is
	// already completed under that token. Otherwise it changes nothing
	// and returns [ErrLeaseLost] with the record as it now stands. The call's
	// now is result.At.
	//
	// A result that can't be stored is a StoreError with [ReasonTooLarge] or
	// [ReasonEncoding] and NotApplied: the guard then completes the record
	// without it.
	Complete(ctx context.Context, lease Lease, result Result) (Record, error)

	// Release says that the attempt had no effect. The record MUST be in
	// progress under the lease's token, or released under it already;
	// otherwise nothing changes and the error is [ErrLeaseLost], with the
	// record as it now stands. The record keeps its attempt number, its
	// fingerprint, its token and its invocation, and gets lease.LastFailure.
	Release(ctx context.Context, lease Lease, now time.Time) (Record, error)

	// Get reads the record, consistently: after a write has been answered, Get
	// returns it or something later. No record is the zero Record, no error.
	Get(ctx context.Context, id string, now time.Time) (Record, error)
}

// KeptAfterExpiry is how long a store keeps a record after its Expires: an hour.
//
// A request to a database can arrive long after it was sent. It carries the time at
// which it was made, so an expired record still refuses it; once the record is
// deleted, nothing does, and a lock or a transaction that everybody has given up
// would be carried out. AWS accepts a request for up to 15 minutes after it was
// signed, and an invocation may sign the same request again for as long as it
// runs, which is another 15 minutes on Lambda. The rest is for clocks that differ.
const KeptAfterExpiry = time.Hour

// State is where a record is in its life.
type State string

// The states. A failed record is a completed one whose Outcome is
// [OutcomeFailed].
const (
	Absent     State = ""           // there is no record
	InProgress State = "INPROGRESS" // an attempt holds the lease, or died holding it
	Completed  State = "COMPLETED"  // the answer is stored; never changes again
	Released   State = "RELEASED"   // an attempt ended without effect; the next may begin
)

// Record is what a store keeps for one key.
type Record struct {
	ID          string    // see Claim.ID
	State       State     // Absent in the zero Record
	Token       string    // fencing token of the attempt that wrote last
	Attempt     int       // 1 for the first attempt; raised by every takeover
	LeaseEnd    time.Time // whole milliseconds; set by Acquire, kept afterwards
	Expires     time.Time // whole seconds; zero: it does not expire (policy Hold)
	Fingerprint string    // digest of the request, compared by the guard; opaque to the store
	Scope       string    // readable, for people and for purging
	StartedAt   time.Time // when the current attempt took the lease, whole milliseconds
	Invocation  string    // names the invocation that made the current attempt; empty outside Lambda
	LastFailure string    // why the current attempt was released; empty in progress, and where it is not known
	Bound       string    // why the record keeps its payload when it is released: see BoundByDownstreamKey
	CompletedAt time.Time // zero unless completed, whole milliseconds
	Result      Result    // zero unless completed
	Steps       Steps     // of a record that is not completed; nil: there are none
}

// LeaseLiveAt reports whether an attempt holds the record at now. A lease is
// compared in whole milliseconds and is over in the millisecond that it names.
func (r Record) LeaseLiveAt(now time.Time) bool {
	return r.State == InProgress && r.LeaseEnd.UnixMilli() > now.UnixMilli()
}

// Held reports whether the record is in progress under policy [Hold]. If the lease is
// over too, as it is in every record that dynamostore's DeadLeases returns, no retry
// runs: the record waits for an operator. A guard under policy Hold also refuses a
// record that isn't Held, if it is in progress and its lease is over.
func (r Record) Held() bool { return r.State == InProgress && r.Expires.IsZero() }

// GoneAt reports whether the record counts as absent at now: there is none, or
// it has expired and no lease on it is live. Expiry is compared in
// whole seconds, as DynamoDB's TTL is.
func (r Record) GoneAt(now time.Time) bool {
	if r.State == Absent {
		return true
	}
	expired := !r.Expires.IsZero() && r.Expires.Unix() <= now.Unix()
	return expired && !r.LeaseLiveAt(now)
}

// Reasons why a record is bound to its payload: Claim.Bound, Lease.Bound and Record.Bound. A
// released record that is not bound accepts a request with another payload, so that a client
// can correct its request. One that is bound refuses it with [ErrPayloadMismatch], because
// the first payload may have had an effect.
//
// After a deployment it may be unknown whether two payloads are the same. With
// BoundByDownstreamKey, the request then runs under the same downstream key, and the service
// behind it refuses another payload. With the other two reasons the request is refused. So a
// record that is bound for several reasons has one of these two.
const (
	BoundByDownstreamKey = "downstream_key" // a handler asked for a DownstreamKey, and may have used it
	BoundByDeadAttempt   = "dead_attempt"   // an attempt died, after unknown effects
	BoundByInnerCall     = "inner_call"     // a guarded call that a handler made has had an effect, or may have
)

// Claim asks for the lease on a record.
type Claim struct {
	ID          string    // the record's identity: a prefix and a hash, printable ASCII
	Scope       string    // readable form of what the ID was made of, without the key
	Fingerprint string    // becomes the record's
	Token       string    // random, of this attempt alone
	Now         time.Time // the caller's clock
	LeaseEnd    time.Time // whole milliseconds
	Expires     time.Time // whole seconds; zero: not until it is completed or released
	Invocation  string    // becomes the record's: Lambda's request id, at most 128 bytes; empty outside Lambda
	Bound       string    // becomes the record's: why it is bound to its payload, or empty; see BoundByDownstreamKey
	Over        *Record   // nil: only if there is no record; else the record to take over
}

// Lease is what an attempt needs to finish what it acquired.
type Lease struct {
	ID          string
	Token       string
	Scope       string    // Claim.Scope, for what a store writes beside the record
	Expires     time.Time // what a release sets as the record's expiry; whole seconds
	LastFailure string    // what a release sets as the record's; at most 128 bytes
	Bound       string    // what a release sets as the record's
}

// Result is what a completed record replays: a Value or a Failure, never both,
// so that a permanent failure can't replay as a zero value.
type Result struct {
	Outcome Outcome   // OutcomeSucceeded or OutcomeFailed
	Value   []byte    // opaque to the store; JSON as the guard writes it
	Failure *Failure  // instead of a Value
	Apart   any       // instead of a Value, from a store that is a Loader: what it needs to load it; opaque to the guard
	At      time.Time // the moment of completion, whole milliseconds
	Expires time.Time // the record's expiry from now on, whole seconds
}

// Failure is as much of an error as a record keeps.
type Failure struct {
	Code    Code   `json:"code"`             // for errors.Is
	Type    string `json:"type,omitempty"`   // Lambda's errorType: the Go type's name
	Message string `json:"message"`          // the error's text
	Status  int    `json:"status,omitempty"` // HTTP status, if the error has one
}

// Reason says why a store could not do what it was asked. It is for logs and
// for the guard's choice, never for clients.
type Reason string

// The reasons.
const (
	ReasonUnknown     Reason = ""              // none of the below
	ReasonTimeout     Reason = "timeout"       // no answer in time
	ReasonUnreachable Reason = "unreachable"   // no connection
	ReasonThrottled   Reason = "throttled"     // refused for capacity
	ReasonConflict    Reason = "conflict"      // a transaction holds the item: busy, not unavailable
	ReasonNoTable     Reason = "no_table"      // the table does not exist
	ReasonPermission  Reason = "no_permission" // the credentials don't allow it, or there are none
	ReasonTooLarge    Reason = "too_large"     // the result does not fit the store
	ReasonEncoding    Reason = "encoding"      // the result could not be encoded
	ReasonForeign     Reason = "foreign"       // the record is not ours, or damaged
	ReasonInvalid     Reason = "invalid"       // the database refused the request as malformed
	ReasonKey         Reason = "no_key"        // the key that encrypts what is stored can't be had now
)

// Throttle says which limit a throttled call ran into, by what an operator can do
// about it. It is for logs and metrics, never for clients.
type Throttle string

// The limits.
const (
	ThrottleUnknown     Throttle = ""                  // none, or the store did not say
	ThrottleKeyRange    Throttle = "key_range"         // one key, or few, get more than a part of the table can give
	ThrottleAccount     Throttle = "account"           // a quota of the account
	ThrottleMaximum     Throttle = "on_demand_maximum" // the maximum that was set for the table or index
	ThrottleProvisioned Throttle = "provisioned"       // the capacity that was provisioned for the table or index
)

// StoreError is the error of a store's verb. Its zero value says the least: why
// is not known, nor whether the write happened.
type StoreError struct {
	Op         string // "acquire", "complete", "release", "get" or "save_steps"
	Reason     Reason
	Throttle   Throttle // of ReasonThrottled: which limit, where the store knows; Err has it in the store's own words
	NotApplied bool     // surely nothing was written: judged over every attempt on the wire
	Err        error    // the cause
}

// Error says what was tried, why it failed and whether it may have happened.
func (e *StoreError) Error() string {
	why := string(e.Reason)
	if why == "" {
		why = "failed"
	}
	happened := "may have been applied"
	if e.NotApplied {
		happened = "not applied"
	}
	return fmt.Sprintf("idempotency store: %s: %s (%s): %v", e.Op, why, happened, e.Err)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// reasonOf returns the reason of a store's error; ReasonUnknown for any other.
func reasonOf(err error) Reason {
	if err == nil {
		return ReasonUnknown
	}
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Reason
	}
	return ReasonUnknown
}

// throttleOf returns the limit that a store's error names.
func throttleOf(err error) Throttle {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Throttle
	}
	return ThrottleUnknown
}

// notApplied reports whether a store's error says that surely nothing was
// written.
func notApplied(err error) bool {
	e, ok := errors.AsType[*StoreError](err)
	return ok && e.NotApplied
}
