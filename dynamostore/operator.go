package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// OperatorOptions are the options of an [Operator]. The zero value of each field selects
// its default.
type OperatorOptions struct {
	// MaxSkew is the maximum difference between the clocks of the database and the
	// functions. It should equal the functions' Options.MaxSkew. A lease counts as live
	// until MaxSkew after its end. Default: 2 s. A negative value is invalid; use 1 ns
	// to allow no difference.
	MaxSkew time.Duration

	// Force allows Release and Settle to change a record whose lease is live. The attempt that
	// holds the lease may still be running. It can no longer store an answer, because the record
	// gets a new token. But its effects may come after the effects of a retry, or after a caller
	// has received the operator's answer. Default: false.
	Force bool

	// Again allows Settle to replace an answer that an operator gave before. Callers may
	// have received the first answer, and functions with lambdaidem.Options.Cache may
	// replay it until it leaves their caches. The record's history of operations shows both
	// answers' operations. The answer of a handler is never replaced. Default: false.
	Again bool

	// TTL is how long a record is kept after it is released or settled. The expiry is
	// rounded up to a whole second. A record that would have lasted longer keeps its
	// expiry. A record that waits for an operator (policy lambdaidem.Hold) has no expiry
	// yet, so TTL alone determines how long it lasts. Set TTL to the TTL of the functions
	// that use the record. Default: 24 h. Minimum: [lambdaidem.MinTTL], 15 minutes.
	TTL time.Duration

	// Random is the source of fencing tokens. It must be safe for concurrent use.
	// Default: crypto/rand.Reader.
	Random io.Reader
}

// Operator changes records on behalf of a person. It uses the database's clock alone to
// decide whether a lease is live and when a record expires.
type Operator struct {
	s      *Store
	name   string
	reason string
	opts   OperatorOptions
}

// Operator returns an Operator for the person with the given name. Each record that the Operator
// changes keeps the name, and the given reason for the change. Operator returns an error if the
// name or the reason is blank or not UTF-8, if the name is longer than [MaxOperator] bytes, or if
// the reason is longer than [MaxReason] bytes. Operator panics on an invalid option.
func (s *Store) Operator(name, reason string, optFns ...func(*OperatorOptions)) (*Operator, error) {
	o := OperatorOptions{}
	for _, fn := range optFns {
		fn(&o)
	}
	orDefault(&o.MaxSkew, 2*time.Second)
	orDefault(&o.TTL, 24*time.Hour)
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.MaxSkew < 0 {
		panic(fmt.Sprintf("dynamostore: Operator: OperatorOptions.MaxSkew is %v; it must be at least 0", o.MaxSkew))
	}
	if o.TTL < lambdaidem.MinTTL {
		panic(fmt.Sprintf("dynamostore: Operator: OperatorOptions.TTL is %v; it must be at least 15 minutes (lambdaidem.MinTTL): a signed request may arrive as late, and must find its record", o.TTL))
	}
	if err := errors.Join(checkOperatorText("name", name, MaxOperator), checkOperatorText("reason", reason, MaxReason)); err != nil {
		return nil, err
	}
	return &Operator{s: s, name: name, reason: reason, opts: o}, nil
}

// The values of StoreError.Op in the errors of Release and Settle.
const (
	opOperatorRelease = "operator_release"
	opOperatorSettle  = "operator_settle"
)

// Release releases a record that an attempt left in progress, so that the next retry runs the
// handler again. The record keeps its attempt number, its steps and its fingerprint. An attempt
// that is still running can no longer complete the record.
//
// inspected is the record as the operator has read it, for example by [Store.Inspect]. The write is
// conditional: the token, the state and the lease end of the record must still be those of
// inspected.Record.
//
// If Release succeeds, it returns the record as it is now. The error is one of these:
//   - [ErrRecordChanged], with the record as it is now
//   - [ErrRecordCompleted], [ErrRecordSettled], [ErrRecordReleased] or [ErrRecordGone]
//   - [*LeaseLiveError], unless OperatorOptions.Force is set
//   - [*lambdaidem.StoreError]. If its NotApplied is false, the record may have been released;
//     inspect it again.
//   - another error, if inspected.Record was not read from the store, or if OperatorOptions.Random
//     failed; the record is then unchanged
func (o *Operator) Release(ctx context.Context, inspected Inspected) (Inspected, error) {
	if inspected.Record.State == lambdaidem.Released {
		return inspected, ErrRecordReleased
	}
	if inspected.settled() {
		return inspected, ErrRecordSettled
	}
	forced, err := o.mayChange(inspected)
	if err != nil {
		return inspected, err
	}
	itm, err := o.nextItem(inspected, OperationReleased, forced)
	if err != nil {
		return inspected, err
	}
	bound := inspected.Record.Bound
	if bound != lambdaidem.BoundByInnerCall {
		bound = lambdaidem.BoundByDeadAttempt // the record doesn't show which effects the attempt had
	}
	itm.release(o.expires(inspected), "", bound)
	return o.write(ctx, inspected, &operatorWrite{op: opOperatorRelease, sets: release, condition: isStillWhatWasSeen}, itm)
}

// expires returns the expiry to write to a record: OperatorOptions.TTL from now, by the database's
// clock, rounded up to a whole second, or the record's current expiry if that is later. A record's
// life is never shortened, because a retry after the expiry runs the handler again, and the
// operator may not know the TTL that the functions use.
func (o *Operator) expires(inspected Inspected) time.Time {
	at := inspected.clock().latest().Add(o.opts.TTL).Add(time.Second - 1).Truncate(time.Second)
	if was := inspected.Record.Expires; was.After(at) {
		return was
	}
	return at
}
