package lambdaidem

import (
	"errors"
	"fmt"
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
	reason := string(e.Reason)
	if reason == "" {
		reason = "failed"
	}
	happened := "may have been applied"
	if e.NotApplied {
		happened = "not applied"
	}
	return fmt.Sprintf("idempotency store: %s: %s (%s): %v", e.Op, reason, happened, e.Err)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

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
