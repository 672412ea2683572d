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

// OperatorOptions are the settings of an [Operator]. The zero value of every field
// is its default.
type OperatorOptions struct {
	// MaxSkew is how far clocks may be apart: that of the database, and those of the
	// functions, whose Options.MaxSkew it should be. A lease counts as live for that
	// long after its end. Default 2 s; at least 0, so 1 ns stands for none.
	MaxSkew time.Duration

	// Force releases and settles a record whose lease is live too: its attempt may
	// still be running, and have effects after a retry has run, or after the answer
	// was given. What it stores is refused, since its token is replaced. Default
	// false.
	Force bool

	// Again settles a record that an operator has settled already. Callers may have
	// received the first answer, and caches of functions may replay it for their age
	// (lambdaidem.Options.Cache). The record keeps both operations. A record that a
	// handler completed is never changed. Default false.
	Again bool

	// TTL is how long a record lasts from the moment when it is released or settled,
	// in whole seconds. A record that would have lasted longer keeps its expiry. One that
	// is held (lambdaidem.Hold) has none, so this should be the TTL of its functions.
	// Default 24 h; at least [lambdaidem.MinTTL], 15 minutes.
	TTL time.Duration

	// Random gives tokens. It must be safe for concurrent use. Default:
	// crypto/rand.Reader.
	Random io.Reader
}

// Operator is a person who decides over records. It goes by the database's
// clock alone.
type Operator struct {
	s      *Store
	name   string
	reason string
	opts   OperatorOptions
}

// Operator returns an operator of that name, who has a reason for what it does:
// both are kept in each record that it changes. The error says what a record can't
// keep: an empty text, one over [MaxOperator] or [MaxReason] bytes. It panics on an
// invalid option.
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

// Why an operator's verb changed nothing.
var (
	// ErrRecordChanged is returned with the record as it now stands: it is not what
	// was shown. Another operator, or an attempt, was faster, and nothing was written.
	ErrRecordChanged = errors.New("the record is not any more what was shown")
	// ErrRecordCompleted is returned for a record that an attempt has completed, or
	// whose answer was erased: it never changes.
	ErrRecordCompleted = errors.New("the record is completed, and the answer of an attempt never changes")
	// ErrRecordSettled is returned for a record that an operator has settled.
	ErrRecordSettled = errors.New("an operator has settled the record, and callers may have received that answer")
	// ErrNotEncrypted is returned by Settle for a record of functions that encrypt
	// answers, if the operator's store has no Options.Encryption.
	ErrNotEncrypted = errors.New("the record's functions encrypt answers, and this store has no key: an answer in plain text would stay readable, and functions may refuse it")
	// ErrRecordReleased is returned by Release for a record that is released already.
	ErrRecordReleased = errors.New("the record is released already: the next retry runs")
	// ErrRecordGone is returned for a record that is not there or has expired: a
	// retry runs as the first.
	ErrRecordGone = errors.New("there is no such record, or it has expired")
)

// errChangedOrApplied is the reason of a StoreError. It is no ErrRecordChanged, which
// says that nothing was written.
var errChangedOrApplied = errors.New("the record is not any more what was shown; an earlier try had no answer and may have been applied before the record changed: look at it again")

var errNotInspected = errors.New("dynamostore: an operator acts on what Store.Inspect has returned, and on nothing else")

// LeaseLiveError is returned for a record that an attempt may be at work on.
type LeaseLiveError struct {
	End     time.Time     // of the lease
	Now     time.Time     // by the database's clock, at the earliest
	MaxSkew time.Duration // that counts on top
}

// Error says how long to wait.
func (e *LeaseLiveError) Error() string {
	return fmt.Sprintf("the lease is live: it ends at %s, and clocks may be %v apart; by the database's clock that is in %v",
		e.End.Format(time.RFC3339Nano), e.MaxSkew, e.Left().Round(time.Millisecond))
}

// Left returns how long it is until the lease counts as over.
func (e *LeaseLiveError) Left() time.Duration { return e.End.Add(e.MaxSkew).Sub(e.Now) }

// Verbs of operators, as StoreError.Op names them.
const (
	opOperatorRelease = "operator_release"
	opOperatorSettle  = "operator_settle"
)

// Release gives a record back that an attempt left in progress: the next retry
// runs again. The record keeps its attempt number, its steps and its fingerprint.
//
// It is conditional on the token, the state and the lease's end that were seen, and
// replaces the token: an attempt that completes after all has lost its lease,
// and of two operators one wins.
//
// It returns the record as it now stands. Errors: [ErrRecordChanged] with that
// record, [ErrRecordCompleted], [ErrRecordReleased], [ErrRecordGone],
// [*LeaseLiveError] unless OperatorOptions.Force is set, and a StoreError; one whose
// NotApplied is false may have happened: look again.
func (o *Operator) Release(ctx context.Context, seen Inspected) (Inspected, error) {
	if seen.Record.State == lambdaidem.Released {
		return seen, ErrRecordReleased
	}
	if seen.settled() {
		return seen, ErrRecordSettled
	}
	forced, err := o.mayEnd(seen)
	if err != nil {
		return seen, err
	}
	it, err := o.ending(seen, OperationReleased, forced)
	if err != nil {
		return seen, err
	}
	bound := seen.Record.Bound
	if bound != lambdaidem.BoundByInnerCall {
		bound = lambdaidem.BoundByDeadAttempt // of whose effects only the operator knows
	}
	it.release(o.expires(seen), "", bound)
	return o.end(ctx, seen, &operatorEnd{op: opOperatorRelease, sets: release, condition: isStillWhatWasSeen}, it)
}

// Settle completes a record with an answer, so that every retry gets it and none
// runs. The record may be in progress or released, or settled before if
// OperatorOptions.Again is set. Settle uses Outcome and Value or Failure of the
// result, which must have the form of the record's kind: see
// [lambdaidem.CheckResult]. The record keeps its fingerprint, and expires a TTL from
// now.
//
// Conditions, result and errors are those of [Operator.Release], except
// [ErrRecordReleased]. Settle also returns [ErrRecordSettled], [ErrNotEncrypted], and
// an error that says what is wrong with the result.
func (o *Operator) Settle(ctx context.Context, seen Inspected, result lambdaidem.Result) (Inspected, error) {
	write := &operatorEnd{op: opOperatorSettle, sets: completion, condition: isStillWhatWasSeen}
	var forced bool
	var err error
	if seen.settled() {
		write.condition = isStillWhatWasSettled
		err = o.maySettleAgain(seen)
	} else {
		forced, err = o.mayEnd(seen)
	}
	if err != nil {
		return seen, err
	}
	if err := o.mayKeep(seen, result); err != nil {
		return seen, err
	}
	it, err := o.ending(seen, OperationSettled, forced)
	if err != nil {
		return seen, err
	}
	result.At, result.Expires = seen.At().Truncate(time.Millisecond), o.expires(seen)
	kept, err := o.s.prepare(ctx, lambdaidem.Lease{ID: it.ID, Token: it.Token, Scope: seen.Record.Scope}, result)
	if err != nil {
		return seen, err
	}
	it.finish(kept)
	return o.end(ctx, seen, write, it)
}

// settled reports whether the record's answer is an operator's.
func (i Inspected) settled() bool {
	return isSettled(i.Record.State, i.Record.Token, i.Operations)
}

// isSettled reports whether a record with this state, token and operations has an
// operator's answer.
func isSettled(state lambdaidem.State, token string, did []Operation) bool {
	n := len(did)
	return state == lambdaidem.Completed && n > 0 && did[n-1].What == OperationSettled && did[n-1].Token == token
}

// maySettleAgain returns an error unless an operator may replace an operator's answer.
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

// mayKeep returns an error unless the record may keep the result. A result without an
// answer needs no encryption.
func (o *Operator) mayKeep(seen Inspected, result lambdaidem.Result) error {
	if err := lambdaidem.CheckResult(seen.Record.Scope, result); err != nil {
		return fmt.Errorf("dynamostore: Settle: %w", err)
	}
	noAnswer := result.Failure != nil && result.Failure.Code == lambdaidem.ErrAnswerUnavailable
	if seen.Encrypted && o.s.keys == nil && !noAnswer {
		return ErrNotEncrypted
	}
	return nil
}

// mayEnd reports whether an operator may end what was seen, and whether only by force.
func (o *Operator) mayEnd(seen Inspected) (forced bool, err error) {
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

// ending returns the item of what was seen, under a token of the operator's.
func (o *Operator) ending(seen Inspected, what OperationKind, forced bool) (*item, error) {
	own, err := o.newToken()
	if err != nil {
		return nil, err
	}
	rec := seen.Record
	done := Operation{What: what, By: o.name, Reason: o.reason, At: seen.At().Truncate(time.Millisecond), Attempt: rec.Attempt, Token: own, Forced: forced}
	return &item{ID: rec.ID, Token: own, Operations: withOperation(seen.Operations, done)}, nil
}

// newToken returns a random fencing token.
func (o *Operator) newToken() (string, error) {
	var token [16]byte
	if _, err := io.ReadFull(o.opts.Random, token[:]); err != nil {
		return "", fmt.Errorf("dynamostore: OperatorOptions.Random: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(token[:]), nil
}

// expires returns when the record expires from now on, by the database's clock. It never
// expires earlier than it would have: the operator may not know the TTL of its functions,
// and once the record is gone a retry runs again.
func (o *Operator) expires(seen Inspected) time.Time {
	at := seen.At().Add(o.opts.TTL).Add(time.Second - 1).Truncate(time.Second)
	if was := seen.Record.Expires; was.After(at) {
		return was
	}
	return at
}

// operatorEnd is one of the conditional writes of operators.
type operatorEnd struct {
	op        string
	sets      updates // what it sets or removes, besides the token and the operations
	condition string
}

// end writes the item over the record that was seen.
func (o *Operator) end(ctx context.Context, seen Inspected, how *operatorEnd, it *item) (Inspected, error) {
	values := (&given{now: seen.At(), seen: &seen.Record}).attributes()
	if how.condition == isStillWhatWasSettled {
		did := operations(seen.Operations)
		values[":seen_operations"] = did.write()
		delete(values, ":seen_state") // DynamoDB refuses values that no expression uses
		delete(values, ":seen_end")
	}
	out, fate, err := o.s.change(ctx, &change{sets: how.sets, also: []string{attrToken, attrOperations}, condition: how.condition,
		returns: types.ReturnValueAllNew}, it, values)
	if err == nil {
		now, err := o.s.inspected(ctx, out.Attributes, out.ResultMetadata)
		if err != nil { // it was written, and can't be read
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
		stands, err := o.s.layout.parse(refused.Item)
		if err != nil {
			return seen, failed(how.op, fate, err)
		}
		o.s.inspect(ctx, &now, stands)
	}
	if slices.ContainsFunc(now.Operations, func(did Operation) bool { return did.Token == it.Token }) {
		return now, nil // an earlier attempt on the wire was applied, whatever came after it
	}
	if fate == wire.Unknown && !isSameAttempt(now.Record, seen.Record) {
		return now, failed(how.op, fate, errChangedOrApplied)
	}
	return now, ErrRecordChanged
}

// isSameAttempt reports whether a record is still that of the attempt that was seen.
// If so, it has every operation of an operator on it. A later attempt's record need
// not: once a record has expired, the next one begins without any.
func isSameAttempt(now, seen lambdaidem.Record) bool {
	return now.State != lambdaidem.Absent && now.Attempt == seen.Attempt && now.StartedAt.Equal(seen.StartedAt)
}

// change is an update of some attributes under a condition.
type change struct {
	sets      updates
	also      []string // further attributes, by their standard names
	condition string
	returns   types.ReturnValue
}

// change sends an UpdateItem to the item of that id. It sets what the item has, and
// removes what it has not. It adds to values, which has those of the condition.
func (s *Store) change(ctx context.Context, c *change, it *item, values attributes) (out *dynamodb.UpdateItemOutput, fate wire.Fate, err error) {
	var set, remove []string
	names := s.layout.names(c.sets, c.condition)
	for i := range itemAttributes {
		a, column := &itemAttributes[i], &s.layout[i]
		if a.setBy&c.sets == 0 && !slices.Contains(c.also, a.standard) {
			continue
		}
		// An operator may not have been told of what is opt-in in this table; what is
		// not in progress any more leaves an index all the same.
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

// updateOf returns the UpdateExpression of these clauses.
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
