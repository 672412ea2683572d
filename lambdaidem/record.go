package lambdaidem

import "time"

// State is the state of a record.
type State string

// The states of a record. A record whose handler failed for good is Completed too; its
// outcome is [OutcomeFailed].
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
	StartedAt   time.Time // when the last attempt took the lease or, without a lease, when it began; in whole milliseconds
	Invocation  string    // Lambda's request id of the last attempt; empty outside Lambda
	LastFailure string    // code or Go type of the error that released the record; empty if in progress or unknown
	Bound       string    // why a released record refuses another payload, such as BoundByDownstreamKey; empty if it doesn't
	CompletedAt time.Time // when the record was completed, in whole milliseconds; zero if it is not completed
	Result      Result    // the stored answer; zero if the record is not completed
	Steps       Steps     // stored results of the handler's steps; nil if there are none or the record is completed
}

// LeaseLiveAt reports whether an attempt holds a live lease on the record at the given time. It
// compares whole milliseconds. A lease is no longer live in the millisecond of LeaseEnd.
func (r Record) LeaseLiveAt(now time.Time) bool {
	return r.State == InProgress && r.LeaseEnd.UnixMilli() > now.UnixMilli()
}

// Held reports whether the record is in progress and does not expire. Once the lease of such a
// record has ended, no retry runs the handler until an operator decides.
//
// A record that is acquired under policy [Hold] is held from the beginning. If an attempt under
// policy [Rerun] dies, and the next retry reaches a guard with policy Hold, that guard holds the
// record from then on. This requires a store that is a [Holder].
func (r Record) Held() bool { return r.State == InProgress && r.Expires.IsZero() }

// GoneAt reports whether every method of a [Store] treats r as absent at the given time: r is the
// zero Record, or it has expired and no lease on it is live. GoneAt compares the expiry in whole
// seconds, like DynamoDB's TTL.
func (r Record) GoneAt(now time.Time) bool {
	if r.State == Absent {
		return true
	}
	expired := !r.Expires.IsZero() && r.Expires.Unix() <= now.Unix()
	return expired && !r.LeaseLiveAt(now)
}

// The values of Record.Bound, Claim.Bound and Lease.Bound. Bound says why a released record refuses
// another payload with [ErrPayloadMismatch]: the first payload may have had an effect. If Bound is
// empty, the record accepts another payload, so that a client can correct its request. If there are
// several reasons, Bound is the first of BoundByInnerCall, BoundByDeadAttempt and
// BoundByDownstreamKey.
//
// After a deployment that changed how fingerprints are made, the guard may be unable to compare
// payloads. If Bound is BoundByDownstreamKey, the guard then accepts the request, because the
// service that receives the downstream key can refuse a changed payload; see [DownstreamKey]. For
// the other two reasons, the guard refuses the request.
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
	Now         time.Time // time of the call, by the caller's clock; in a Completion, the time when the attempt began
	LeaseEnd    time.Time // when the lease ends, in whole milliseconds
	Expires     time.Time // when the record expires if it stays in progress, in whole seconds; zero if it does not expire
	Invocation  string    // Lambda's request id, at most 128 bytes; empty outside Lambda
	Bound       string    // becomes Record.Bound: why the record refuses another payload; empty if it doesn't
	Over        *Record   // the record to take over; nil to acquire only if there is no record
}

// Lease identifies the attempt that completes or releases a record, by ID and Token. The other
// fields are values for the items that the store then writes.
type Lease struct {
	ID          string    // the record's ID
	Token       string    // the attempt's fencing token
	Scope       string    // the Scope of the claim, for items that a store writes besides the record
	Expires     time.Time // Record.Expires after a release, in whole seconds
	LastFailure string    // Record.LastFailure after a release, at most 128 bytes
	Bound       string    // Record.Bound after a release
}

// Result is the stored answer of a completed record. Exactly one of Value, Failure and Apart is
// set. A failure has a field of its own, so that no replay takes it for an empty Value. Apart
// stands for a large Value: it says where the store keeps the Value outside the record.
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
