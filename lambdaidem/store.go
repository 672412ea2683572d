package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Store keeps one record for each idempotency key. It makes no decisions: each method
// changes or reads a record and returns the record's current state, and the [Guard]
// decides what to do next. A Store reads no clock and makes no random values. The caller
// passes both in.
//
// Every method treats an expired record as absent, even if the database has not deleted
// it yet. A record is expired if its Expires has passed at the time of the call and no
// lease on it is live; see [Record.GoneAt]. A Store must keep an expired record for at
// least [KeptAfterExpiry], because the kept record refuses requests that were sent before
// the expiry and arrive late.
//
// The error of a method is a *[StoreError] or [ErrLeaseLost]. If it is unknown whether a
// write was applied, the error is a StoreError whose NotApplied is false.
//
// Package lambdaidem/storetest has the tests that every Store must pass.
type Store interface {
	// Acquire takes the lease on a record.
	//
	// If claim.Over is nil, Acquire MUST write the record only if there is none. The new
	// record has attempt number 1.
	//
	// If claim.Over is set, Acquire MUST write only if the record has the same token,
	// state and lease end as claim.Over. It raises the attempt number by one, replaces
	// the record's invocation by the claim's, and erases the last failure. It never
	// creates a record, and never takes over a completed one.
	//
	// Acquire returns the current record. The caller holds the lease if and only if that
	// record is in progress and has claim.Token. This is also true if an earlier request
	// with the same claim was applied and its reply was lost. If the current record
	// prevents the write, err is nil. If there is no record to take over, or it has
	// expired, Acquire returns the zero Record and no error.
	Acquire(ctx context.Context, claim Claim) (Record, error)

	// Complete stores the result if the record is in progress and has the lease's token,
	// even if the lease has ended. It also succeeds if the record is already completed
	// under that token, because the guard repeats a call whose reply was lost. The record
	// then keeps the result that it has. In all other cases, Complete changes nothing and
	// returns [ErrLeaseLost] with the current record. The time of the call is result.At.
	//
	// If the result can't be stored, the error is a StoreError with [ReasonTooLarge] or
	// [ReasonEncoding] and NotApplied. The guard then completes the record without an
	// answer.
	Complete(ctx context.Context, lease Lease, result Result) (Record, error)

	// Release ends an attempt without storing an answer, so that the next attempt may begin
	// at once. The record MUST be in progress and have the lease's token. Release also
	// succeeds if the record is already released under that token, because the guard
	// repeats a call whose reply was lost. In all other cases, Release changes nothing and
	// returns [ErrLeaseLost] with the current record.
	//
	// The record keeps its attempt number, fingerprint, token and invocation. Its expiry,
	// last failure and Bound become those of the lease.
	Release(ctx context.Context, lease Lease, now time.Time) (Record, error)

	// Get returns the record, or the zero Record if there is none. The read is strongly
	// consistent: it reflects every write whose reply was received before Get was called.
	Get(ctx context.Context, id string, now time.Time) (Record, error)
}

// KeptAfterExpiry is how long a store keeps a record after it has expired: one hour.
//
// The kept record refuses claims and transactions that reach the database late. Suppose that a
// claim is sent before the record expires, but reaches the database only after the expiry. Its
// sender may have given up the claim long ago, so the database must not carry out the claim.
// The claim has a condition: there is no record, or the record had already expired when the claim
// was made. The kept record had not expired then, so the condition fails. If the record were
// deleted, the database would carry out the claim.
//
// AWS accepts a request for up to 15 minutes after it was signed. An invocation may sign the
// same request again for as long as it runs, which is another 15 minutes on Lambda. The rest of
// the hour allows for clocks that differ.
const KeptAfterExpiry = time.Hour

// State is the state of a record.
type State string

// The states. A record whose handler failed for good is Completed too, with the outcome
// [OutcomeFailed].
const (
	Absent     State = ""           // there is no record
	InProgress State = "INPROGRESS" // an attempt holds the lease, or died while it held the lease
	Completed  State = "COMPLETED"  // the answer is stored; the record never changes again
	Released   State = "RELEASED"   // the last attempt ended without an answer to store; the next attempt may begin
)

// Record is the state that a store keeps for one idempotency key.
type Record struct {
	ID          string    // primary key: a prefix and a hash, printable ASCII
	State       State     // Absent in the zero Record
	Token       string    // fencing token of the last attempt, the only one that may complete or release the record
	Attempt     int       // number of the last attempt; the first has number 1
	LeaseEnd    time.Time // when the last attempt's lease ends or ended, in whole milliseconds
	Expires     time.Time // when the record expires, in whole seconds; zero if it does not expire, such as a record in progress under policy Hold
	Fingerprint string    // digest of the payload, which the guard compares; opaque to the store
	Scope       string    // namespace, method, route and caller in readable form; see ParseScope
	StartedAt   time.Time // when the last attempt took the lease, in whole milliseconds
	Invocation  string    // Lambda's request id of the last attempt; empty outside Lambda
	LastFailure string    // code or Go type of the error that released the record; empty if in progress or unknown
	Bound       string    // why a released record refuses another payload, such as BoundByDownstreamKey; empty if it doesn't
	CompletedAt time.Time // when the record was completed, in whole milliseconds; zero if it is not completed
	Result      Result    // the stored answer; zero if the record is not completed
	Steps       Steps     // stored results of the handler's steps; nil if there are none or the record is completed
}

// LeaseLiveAt reports whether an attempt holds a live lease on the record at now. It
// compares whole milliseconds. A lease is no longer live in the millisecond of LeaseEnd.
func (r Record) LeaseLiveAt(now time.Time) bool {
	return r.State == InProgress && r.LeaseEnd.UnixMilli() > now.UnixMilli()
}

// Held reports whether the record is in progress and does not expire. Once the lease of such a
// record has ended, no retry runs the handler until an operator decides.
//
// A record that is acquired under policy [Hold] is held from the beginning. A record that is
// acquired under policy [Rerun] is not. If its attempt dies and the next retry reaches a guard
// with policy Hold, that guard removes the expiry, if the store is a [Holder].
func (r Record) Held() bool { return r.State == InProgress && r.Expires.IsZero() }

// GoneAt reports whether every method of a [Store] treats the record as absent at now.
// That is so if there is no record, or if it has expired and no lease on it is live.
// GoneAt compares the expiry in whole seconds, like DynamoDB's TTL.
func (r Record) GoneAt(now time.Time) bool {
	if r.State == Absent {
		return true
	}
	expired := !r.Expires.IsZero() && r.Expires.Unix() <= now.Unix()
	return expired && !r.LeaseLiveAt(now)
}

// The values of Record.Bound, Claim.Bound and Lease.Bound. Bound says why a released record
// refuses a request with another payload. If Bound is empty, the record accepts another
// payload, so that a client can correct its request. Otherwise the record refuses another
// payload with [ErrPayloadMismatch], because the first payload may have had an effect. If there
// are several reasons, Bound is the first of BoundByInnerCall, BoundByDeadAttempt and
// BoundByDownstreamKey.
//
// After a deployment that changed how fingerprints are made, the guard may be unable to tell
// whether a payload is the same. With BoundByInnerCall or BoundByDeadAttempt, the guard then
// refuses the request. With BoundByDownstreamKey, the guard accepts the request: the handler
// sends the same downstream key as before, so the service that receives the key can refuse a
// payload that has changed.
const (
	BoundByDownstreamKey = "downstream_key" // a handler called DownstreamKey, and may have sent the key to another service
	BoundByDeadAttempt   = "dead_attempt"   // an attempt died, or failed open and ran a step: the record does not show its effects
	BoundByInnerCall     = "inner_call"     // a handler made a guarded call, which had an effect or may have had one
)

// Claim is a request for the lease on a record; see Store.Acquire.
type Claim struct {
	ID          string    // the record's primary key: a prefix and a hash, printable ASCII
	Scope       string    // namespace, method, route and caller in readable form, without the key
	Fingerprint string    // digest of the payload; becomes Record.Fingerprint
	Token       string    // random fencing token of this attempt; becomes Record.Token
	Now         time.Time // time of the call, by the caller's clock
	LeaseEnd    time.Time // when the lease ends, in whole milliseconds
	Expires     time.Time // when the record expires if it stays in progress, in whole seconds; zero if it does not expire
	Invocation  string    // Lambda's request id, at most 128 bytes; empty outside Lambda
	Bound       string    // becomes Record.Bound: why the record refuses another payload; empty if it doesn't
	Over        *Record   // the record to take over; nil to acquire only if there is no record
}

// Lease identifies the attempt that completes or releases a record, and has the values
// that a release stores.
type Lease struct {
	ID          string    // the record's ID
	Token       string    // the attempt's fencing token
	Scope       string    // the Scope of the claim, for items that a store writes besides the record
	Expires     time.Time // Record.Expires after a release, in whole seconds
	LastFailure string    // Record.LastFailure after a release, at most 128 bytes
	Bound       string    // Record.Bound after a release
}

// Result is the stored answer of a completed record: a Value, a Failure, or Apart, which says
// where the store keeps a large Value outside the record. Only one of the three is set, so that
// a stored failure can't be replayed as a zero value.
type Result struct {
	Outcome Outcome   // OutcomeSucceeded or OutcomeFailed
	Value   []byte    // the answer as JSON; opaque to the store
	Failure *Failure  // the handler's error, if an error was stored instead of a Value
	Apart   any       // set by a Loader that stores the Value outside the record; nil in a Result to store
	At      time.Time // when the record was completed, in whole milliseconds
	Expires time.Time // when the completed record expires, in whole seconds
}

// Failure is an error as a record stores it.
type Failure struct {
	Code    Code   `json:"code"`             // the code that errors.Is finds in the replayed error
	Type    string `json:"type,omitempty"`   // errorType that Lambda reports: the name of the error's Go type
	Message string `json:"message"`          // text of the error
	Status  int    `json:"status,omitempty"` // HTTP status; 0 if the error has none
}

// Reason classifies the failure of a store call. The guard uses it to decide whether to
// retry the call, and logs and metrics contain it. Clients never see it.
type Reason string

// The reasons.
const (
	ReasonUnknown     Reason = ""              // none of the other reasons
	ReasonTimeout     Reason = "timeout"       // the database did not reply in time
	ReasonUnreachable Reason = "unreachable"   // no connection to the database
	ReasonThrottled   Reason = "throttled"     // a capacity limit was exceeded; see Throttle
	ReasonConflict    Reason = "conflict"      // a transaction is writing the item; a retry soon afterwards can succeed
	ReasonNoTable     Reason = "no_table"      // the table does not exist
	ReasonPermission  Reason = "no_permission" // there are no credentials, or they don't allow the request
	ReasonTooLarge    Reason = "too_large"     // the result exceeds the size that the store can keep
	ReasonEncoding    Reason = "encoding"      // the result could not be encoded
	ReasonForeign     Reason = "foreign"       // the record was written by another tool, or is damaged
	ReasonInvalid     Reason = "invalid"       // the database refused the request as malformed
	ReasonKey         Reason = "no_key"        // the store encrypts answers, and its encryption key is not available now
)

// Throttle names the capacity limit that a throttled call exceeded, so that an operator
// knows which one to raise. Logs and metrics contain it. Clients never see it.
type Throttle string

// The limits.
const (
	ThrottleUnknown     Throttle = ""                  // the call was not throttled, or the database did not name the limit
	ThrottleKeyRange    Throttle = "key_range"         // throughput of one partition: too many requests for one key or a few keys
	ThrottleAccount     Throttle = "account"           // a quota of the AWS account
	ThrottleMaximum     Throttle = "on_demand_maximum" // the maximum on-demand throughput set on the table or index
	ThrottleProvisioned Throttle = "provisioned"       // the provisioned capacity of the table or index
)

// StoreError is the error of a store method. With the zero values of Reason and NotApplied
// it means that the cause is unknown, and that the write may have been applied.
type StoreError struct {
	Op         string   // the failed method, such as "acquire", "complete", "release", "get" or "save_steps"
	Reason     Reason   // why the call failed
	Throttle   Throttle // the exceeded limit if Reason is ReasonThrottled; empty if the database did not name it
	NotApplied bool     // neither the request nor a retry of it wrote anything; if false, the write may have been applied
	Err        error    // the cause
}

// Error returns the method, the reason, whether the write may have been applied, and the
// cause.
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

// reasonOf returns the Reason of the StoreError in err, or ReasonUnknown if there is none.
func reasonOf(err error) Reason {
	if err == nil {
		return ReasonUnknown
	}
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Reason
	}
	return ReasonUnknown
}

// throttleOf returns the Throttle of the StoreError in err, or ThrottleUnknown if there is
// none.
func throttleOf(err error) Throttle {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Throttle
	}
	return ThrottleUnknown
}

// notApplied reports whether err is a StoreError that guarantees that nothing was written.
func notApplied(err error) bool {
	e, ok := errors.AsType[*StoreError](err)
	return ok && e.NotApplied
}
