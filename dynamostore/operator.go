package dynamostore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
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

	// Force allows Release and Settle to change a record whose lease is live. The
	// attempt that holds the lease may still be running, so its effects may come after
	// those of a retry, or after a caller has received the operator's answer. The
	// attempt can no longer store an answer, because the record gets a new token.
	// Default: false.
	Force bool

	// Again allows Settle to replace an answer that an operator gave before. Callers may
	// have received the first answer, and functions with lambdaidem.Options.Cache may
	// replay it until it leaves their caches. The record keeps both operations. The
	// answer of a handler is never replaced. Default: false.
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

// Operator returns an Operator for the person called name. Each record that the Operator
// changes keeps the name and the reason for the change. Operator returns an error if the name
// or the reason is blank, is not UTF-8, or is longer than [MaxOperator] or [MaxReason] bytes.
// Operator panics on an invalid option.
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

// Errors of the methods of Operator. Each means that nothing was changed.
var (
	// ErrRecordChanged means that another operator or an attempt changed the record
	// after it was inspected. It is returned with the record as it is now.
	ErrRecordChanged = errors.New("the record is not any more what was shown")
	// ErrRecordCompleted means that an attempt completed the record, or that a purge
	// erased its answer. An operator can't change such a record.
	ErrRecordCompleted = errors.New("the record is completed, and the answer of an attempt never changes")
	// ErrRecordSettled means that an operator has already settled the record. Release
	// never changes such a record. Settle replaces the operator's answer only if
	// OperatorOptions.Again is set.
	ErrRecordSettled = errors.New("an operator has settled the record, and callers may have received that answer")
	// ErrNotEncrypted means that the operator's store has no Options.Encryption, although the
	// functions that use the record encrypt their answers. Settle returns it, unless the result
	// has no answer (lambdaidem.NoAnswer).
	ErrNotEncrypted = errors.New("the record's functions encrypt answers, and this store has no key: an answer in plain text would stay readable, and functions may refuse it")
	// ErrRecordReleased is returned by Release if the record is already released.
	ErrRecordReleased = errors.New("the record is released already: the next retry runs")
	// ErrRecordGone means that there is no such record, or that it has expired. A
	// retry runs the handler as the first attempt.
	ErrRecordGone = errors.New("there is no such record, or it has expired")
)

// errChangedOrApplied is the cause of a StoreError if it is unknown whether the operator's
// write was applied: the reply to one try was lost, and a later try was refused because the
// record has changed. ErrRecordChanged would be wrong here, because it means that nothing was
// written.
var errChangedOrApplied = errors.New("the record is not any more what was shown; an earlier try had no answer and may have been applied before the record changed: look at it again")

var errNotInspected = errors.New("dynamostore: an operator acts on what Store.Inspect has returned, and on nothing else")

// LeaseLiveError means that the record's lease is live, so its attempt may still be
// running.
type LeaseLiveError struct {
	End     time.Time     // the end of the lease
	Now     time.Time     // the time of the check by the database's clock; see Inspected.At
	MaxSkew time.Duration // OperatorOptions.MaxSkew; the lease counts as live until End plus MaxSkew
}

// Error returns a text that says how long to wait.
func (e *LeaseLiveError) Error() string {
	return fmt.Sprintf("the lease is live: it ends at %s, and clocks may be %v apart; by the database's clock that is in %v",
		e.End.Format(time.RFC3339Nano), e.MaxSkew, e.Left().Round(time.Millisecond))
}

// Left returns the time from Now until the lease no longer counts as live.
func (e *LeaseLiveError) Left() time.Duration { return e.End.Add(e.MaxSkew).Sub(e.Now) }

// The values of StoreError.Op in the errors of Release and Settle.
const (
	opOperatorRelease = "operator_release"
	opOperatorSettle  = "operator_settle"
)

// Release releases a record that an attempt left in progress, so that the next retry runs
// the handler again. The record keeps its attempt number, its steps and its fingerprint.
//
// The write is conditional: the record must still have the token, the state and the lease end
// that it has in seen. The write also replaces the token. If two operators change the same
// record, only one of them succeeds. If the attempt is still running, it can no longer
// complete the record.
//
// If Release succeeds, it returns the record as it is now. The error is one of these:
//   - [ErrRecordChanged], with the record as it is now
//   - [ErrRecordCompleted], [ErrRecordSettled], [ErrRecordReleased] or [ErrRecordGone]
//   - [*LeaseLiveError], unless OperatorOptions.Force is set
//   - [*lambdaidem.StoreError]. If its NotApplied is false, the record may have been
//     released; inspect it again.
//   - another error, after which the record is unchanged. Either seen was not read from the
//     store, or OperatorOptions.Random failed.
func (o *Operator) Release(ctx context.Context, seen Inspected) (Inspected, error) {
	if seen.Record.State == lambdaidem.Released {
		return seen, ErrRecordReleased
	}
	if seen.settled() {
		return seen, ErrRecordSettled
	}
	forced, err := o.mayChange(seen)
	if err != nil {
		return seen, err
	}
	it, err := o.nextItem(seen, OperationReleased, forced)
	if err != nil {
		return seen, err
	}
	bound := seen.Record.Bound
	if bound != lambdaidem.BoundByInnerCall {
		bound = lambdaidem.BoundByDeadAttempt // the record doesn't show which effects the attempt had
	}
	it.release(o.expires(seen), "", bound)
	return o.write(ctx, seen, &operatorWrite{op: opOperatorRelease, sets: release, condition: isStillWhatWasSeen}, it)
}

// Settle completes a record with an answer from the operator. Every retry then gets this
// answer, and none runs the handler. The record may be in progress or released. If
// OperatorOptions.Again is set, it may also have been settled before. The record keeps its
// fingerprint and lasts for at least OperatorOptions.TTL.
//
// Settle uses the Outcome and the Value or Failure of result. They must fit the kind of the
// record; see [lambdaidem.CheckResult].
//
// The write is conditional: the record must still have the token and the state that it has in
// seen. The write also replaces the token, so an attempt that is still running can no longer
// complete the record.
//
// If Settle succeeds, it returns the record as it is now. The error is one of these:
//   - [ErrRecordChanged], with the record as it is now
//   - [ErrRecordCompleted] or [ErrRecordGone]
//   - [ErrRecordSettled], unless OperatorOptions.Again is set
//   - [ErrNotEncrypted], if the answer must be encrypted and the store has no key
//   - [*LeaseLiveError], unless OperatorOptions.Force is set
//   - [*lambdaidem.StoreError]. If its NotApplied is false, the record may have been
//     settled; inspect it again.
//   - another error, after which the record is unchanged, if the given result does not fit
//     the record, if seen was not read from the store, or if OperatorOptions.Random failed
func (o *Operator) Settle(ctx context.Context, seen Inspected, result lambdaidem.Result) (Inspected, error) {
	write := &operatorWrite{op: opOperatorSettle, sets: completion, condition: isStillWhatWasSeen}
	var forced bool
	var err error
	if seen.settled() {
		write.condition = isStillWhatWasSettled
		err = o.maySettleAgain(seen)
	} else {
		forced, err = o.mayChange(seen)
	}
	if err != nil {
		return seen, err
	}
	if err := o.mayStore(seen, result); err != nil {
		return seen, err
	}
	it, err := o.nextItem(seen, OperationSettled, forced)
	if err != nil {
		return seen, err
	}
	result.At, result.Expires = seen.At().Truncate(time.Millisecond), o.expires(seen)
	kept, err := o.s.prepare(ctx, lambdaidem.Lease{ID: it.ID, Token: it.Token, Scope: seen.Record.Scope}, result)
	if err != nil {
		return seen, err
	}
	it.finish(kept)
	return o.write(ctx, seen, write, it)
}

// settled reports whether the record has an answer that an operator gave.
func (i Inspected) settled() bool {
	return isSettled(i.Record.State, i.Record.Token, i.Operations)
}

// isSettled reports whether a record has an answer that an operator gave. The parameters are the
// record's state, token and operations.
//
// Settle completes the record, gives it a new token, and adds an OperationSettled with that
// token. A later change, such as a purge, adds another operation or replaces the token. So a
// completed record still has the operator's answer if its latest operation is an
// OperationSettled with the record's token.
func isSettled(state lambdaidem.State, token string, did []Operation) bool {
	n := len(did)
	return state == lambdaidem.Completed && n > 0 && did[n-1].What == OperationSettled && did[n-1].Token == token
}

// maySettleAgain returns an error unless this operator may replace the answer of a record
// that an operator has settled.
func (o *Operator) maySettleAgain(seen Inspected) error {
	switch {
	case seen.read.IsZero():
		return errNotInspected
	case seen.Record.GoneAt(seen.At()):
		return ErrRecordGone
	case !o.opts.Again:
		return ErrRecordSettled
	}
	return nil
}

// mayStore returns an error unless the result may be stored in the record. The result must
// fit the record's kind. If the record's functions encrypt answers, the store needs a key,
// except for a result without an answer (lambdaidem.NoAnswer).
func (o *Operator) mayStore(seen Inspected, result lambdaidem.Result) error {
	if err := lambdaidem.CheckResult(seen.Record.Scope, result); err != nil {
		return fmt.Errorf("dynamostore: Settle: %w", err)
	}
	noAnswer := result.Failure != nil && result.Failure.Code == lambdaidem.ErrAnswerUnavailable
	if seen.Encrypted && o.s.keys == nil && !noAnswer {
		return ErrNotEncrypted
	}
	return nil
}

// mayChange returns an error unless this operator may release or settle the record. The result
// forced is true if mayChange allows the change although the record's lease is live, because
// OperatorOptions.Force is set.
func (o *Operator) mayChange(seen Inspected) (forced bool, err error) {
	now, rec := seen.At(), seen.Record
	switch {
	case seen.read.IsZero():
		return false, errNotInspected
	case rec.GoneAt(now):
		return false, ErrRecordGone
	case rec.State == lambdaidem.Completed:
		return false, ErrRecordCompleted
	case rec.LeaseLiveAt(now.Add(-o.opts.MaxSkew)):
		if !o.opts.Force {
			return false, &LeaseLiveError{End: rec.LeaseEnd, Now: now, MaxSkew: o.opts.MaxSkew}
		}
		return true, nil
	}
	return false, nil
}

// nextItem returns an item for the record with a new token, and with one more operation.
// The caller sets the other attributes that are to be written.
func (o *Operator) nextItem(seen Inspected, what OperationKind, forced bool) (*item, error) {
	own, err := o.newToken()
	if err != nil {
		return nil, err
	}
	rec := seen.Record
	done := Operation{What: what, By: o.name, Reason: o.reason, At: seen.At().Truncate(time.Millisecond), Attempt: rec.Attempt, Token: own, Forced: forced}
	return &item{ID: rec.ID, Token: own, Operations: withOperation(seen.Operations, done)}, nil
}

func (o *Operator) newToken() (string, error) {
	var token [16]byte
	if _, err := io.ReadFull(o.opts.Random, token[:]); err != nil {
		return "", fmt.Errorf("dynamostore: OperatorOptions.Random: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(token[:]), nil
}

// expires returns the expiry to write to a record: OperatorOptions.TTL from now, by the
// database's clock, rounded up to a whole second. If the record already expires later than that,
// expires returns the record's own expiry. A retry after the expiry runs the handler again, so an
// operator who does not know the TTL that the functions use must never shorten a record's life.
func (o *Operator) expires(seen Inspected) time.Time {
	at := seen.latest().Add(o.opts.TTL).Add(time.Second - 1).Truncate(time.Second)
	if was := seen.Record.Expires; was.After(at) {
		return was
	}
	return at
}

// operatorWrite describes the conditional write of Release or Settle.
type operatorWrite struct {
	op        string  // StoreError.Op in its errors
	sets      updates // the attributes to set or remove, in addition to token and operations
	condition string  // its ConditionExpression
}

// write sends the conditional UpdateItem of Release or Settle. The parameter how
// describes the request, and the item has the new values. The parameter seen is the record as
// the operator read it. The condition fails if the record has changed since that read.
//
// If the update succeeds, the method returns the record as it is now. The error is
// ErrRecordChanged, also with the record as it is now, or a StoreError.
func (o *Operator) write(ctx context.Context, seen Inspected, how *operatorWrite, it *item) (Inspected, error) {
	values := (&given{now: seen.At(), seen: &seen.Record}).attributes()
	if how.condition == isStillWhatWasSettled {
		did := operations(seen.Operations)
		values[":seen_operations"] = did.write()
		delete(values, ":seen_state") // DynamoDB refuses values that no expression uses
		delete(values, ":seen_end")
	}
	out, fate, err := o.s.updateAttributes(ctx, &attributeUpdate{sets: how.sets, also: []string{attrToken, attrOperations}, condition: how.condition,
		returns: types.ReturnValueAllNew}, it, values)
	if err == nil {
		now, err := o.s.inspected(ctx, out.Attributes, out.ResultMetadata)
		if err != nil { // the write was applied, but the reply can't be read
			return Inspected{}, failed(how.op, wire.Unknown, err)
		}
		return now, nil
	}
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return seen, failed(how.op, fate, err)
	}
	now := Inspected{Now: seen.Now, read: seen.read}
	if len(refused.Item) > 0 {
		current, err := o.s.layout.parse(refused.Item)
		if err != nil {
			return seen, failed(how.op, fate, err)
		}
		o.s.inspect(ctx, &now, current)
	}
	if slices.ContainsFunc(now.Operations, func(did Operation) bool { return did.Token == it.Token }) {
		return now, nil // an earlier try of this write was applied, and its reply was lost
	}
	if fate == wire.Unknown && !isSameAttempt(now.Record, seen.Record) {
		return now, failed(how.op, fate, errChangedOrApplied)
	}
	return now, ErrRecordChanged
}

// isSameAttempt reports whether the record still belongs to the same attempt as when it was
// seen. If so, the record's list of operations has every operation since then, so an operation
// that is not in the list was not applied.
//
// If the record belongs to a later attempt, the list proves nothing: when a record has expired,
// the next attempt creates the record anew, with an empty list.
func isSameAttempt(now, seen lambdaidem.Record) bool {
	return now.State != lambdaidem.Absent && now.Attempt == seen.Attempt && now.StartedAt.Equal(seen.StartedAt)
}

// attributeUpdate describes an UpdateItem that sets or removes some attributes under a
// condition.
type attributeUpdate struct {
	sets      updates           // the updates, such as completion, whose attributes are set or removed
	also      []string          // further attributes to set or remove, by their standard names
	condition string            // the ConditionExpression
	returns   types.ReturnValue // the ReturnValues of the request
}

// updateAttributes sends an UpdateItem for the record with the given item's id. For each
// attribute that c selects, the UpdateItem stores the value that the item has. If the item has
// no value for the attribute, the UpdateItem removes the attribute. The parameter values has the
// values for the placeholders of the condition. updateAttributes adds the values that the
// UpdateItem stores to this map.
func (s *Store) updateAttributes(ctx context.Context, c *attributeUpdate, it *item, values attributes) (out *dynamodb.UpdateItemOutput, fate wire.Fate, err error) {
	var set, remove []string
	names := s.layout.names(c.sets, c.condition)
	for i := range itemAttributes {
		a, column := &itemAttributes[i], &s.layout[i]
		if a.setBy&c.sets == 0 && !slices.Contains(c.also, a.standard) {
			continue
		}
		// The functions may have Options.LeaseIndex although the operator's store does
		// not. The store then has no name for the index's partition key. Use the standard
		// name, so that the update removes the attribute, and the record leaves the index.
		if names[a.placeholder] = column.name; column.name == "" {
			names[a.placeholder] = a.standard
		}
		if v := valueOf(a.field(it)); v != nil {
			set = append(set, column.assign)
			values[column.value] = v
		} else {
			remove = append(remove, a.placeholder)
		}
	}
	in := &dynamodb.UpdateItemInput{
		TableName:                           aws.String(s.table),
		Key:                                 s.key(it.ID),
		UpdateExpression:                    aws.String(updateOf(set, remove)),
		ConditionExpression:                 aws.String(c.condition),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        c.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}
	fate, err = wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().UpdateItem(ctx, in)
		return err
	})
	return out, fate, err
}

// updateOf returns the UpdateExpression that makes the given assignments and removes the
// given attributes.
func updateOf(set, remove []string) string {
	var verbs []string
	if len(set) > 0 {
		verbs = append(verbs, "SET "+strings.Join(set, ", "))
	}
	if len(remove) > 0 {
		verbs = append(verbs, "REMOVE "+strings.Join(remove, ", "))
	}
	return strings.Join(verbs, " ")
}
