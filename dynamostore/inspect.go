package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Inspected is a record in full, as an operator was shown it: what [Operator]'s
// verbs are conditional on.
type Inspected struct {
	// Record is the record, one that has expired too ([lambdaidem.Record.GoneAt]);
	// the zero Record: there is no item.
	Record lambdaidem.Record
	// Operations are what operators did to it, the latest last.
	Operations []Operation
	// StepsUnread says why the results of the record's steps are missing, and only
	// their names are there: they are encrypted, and could not be decrypted.
	StepsUnread error
	// Encrypted reports whether the functions that the record is of encrypt answers:
	// the store that took its lease has Options.Encryption. [Operator.Settle] then needs
	// it too.
	Encrypted bool
	// Now was the time by the database's clock, at the earliest, when the record was
	// read: in whole seconds.
	Now time.Time

	read time.Time // when that was, by this machine's monotonic clock
}

// At is the time by the database's clock, at the earliest: Now, and what has
// passed since. That the clock of this machine is wrong is no matter.
func (i Inspected) At() time.Time { return i.Now.Add(time.Since(i.read)) }

// Inspect reads a record in full, by one consistent GetItem. An answer that is
// compressed or in parts is read by [Store.Load].
//
// The error is a StoreError: with [lambdaidem.ReasonForeign] for an item that is
// no record of this package, a part of an answer for one.
func (s *Store) Inspect(ctx context.Context, id string) (Inspected, error) {
	ctx, v := witnessed(ctx, opInspect)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), Key: s.key(id), ConsistentRead: aws.Bool(true),
	})
	v.ambiguous = false // a read writes nothing, however it ends
	if err != nil {
		return Inspected{}, v.storeError(err)
	}
	return s.inspected(ctx, v, out.Item, out.ResultMetadata)
}

const opInspect = "inspect"

// inspected is what an answer of the database's says of a record.
func (s *Store) inspected(ctx context.Context, v *verdict, attrs attributes, meta middleware.Metadata) (Inspected, error) {
	now, ok := awsmiddleware.GetServerTime(meta)
	if !ok {
		return Inspected{}, v.storeError(errNoDate)
	}
	seen := inspectedAt(now)
	if len(attrs) == 0 {
		return seen, nil
	}
	it, err := s.layout.parse(attrs)
	if err != nil {
		return Inspected{}, v.storeError(err)
	}
	s.inspect(ctx, &seen, it)
	return seen, nil
}

// inspect fills in what the item says.
func (s *Store) inspect(ctx context.Context, seen *Inspected, it *item) {
	seen.Record, seen.Operations, seen.Encrypted = it.record(), it.Operations, it.Encrypts != ""
	if it.sealsSteps() {
		var steps lambdaidem.Steps
		if steps, seen.StepsUnread = s.openSteps(it, s.asking(ctx)); seen.StepsUnread == nil {
			seen.Record.Steps = steps
		}
	}
}

// inspectedAt is of no record yet: what was read now, by an answer of that date.
func inspectedAt(date time.Time) Inspected { return Inspected{Now: date.UTC(), read: time.Now()} }

// errNoDate is of something in between: DynamoDB says the date in each answer
// (RFC 9110, section 6.6.1).
var errNoDate = errors.New("the answer has no Date header, so the database's clock is not known")
