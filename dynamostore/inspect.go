package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Inspected is a complete record as an operator has read it. The methods of [Operator]
// change a record only if it is still as it was inspected.
type Inspected struct {
	// Record is the record. It may have expired; see [lambdaidem.Record.GoneAt]. The
	// zero Record means that there is no item.
	Record lambdaidem.Record
	// Operations lists the changes that operators have made to the record, the latest
	// last.
	Operations []Operation
	// StepsUnread is not nil if the results of the record's steps could not be
	// decrypted. Record.Steps then has only the names of the steps.
	StepsUnread error
	// Encrypted reports whether the store that took the record's lease has
	// Options.Encryption. If so, an operator's answer must be encrypted too. [Operator.Settle]
	// then returns [ErrNotEncrypted] if the operator's store has no Options.Encryption. Only
	// the result lambdaidem.NoAnswer needs no encryption.
	Encrypted bool
	// Now is the time at which the database sent the record, by the database's own clock. It
	// is in whole seconds, rounded down.
	Now time.Time

	readAt time.Time // the time of the read, by this machine's monotonic clock
}

// Inspect reads a complete record by one consistent GetItem. If the answer is compressed, encrypted
// or stored in parts, use [Store.Load] to read it.
//
// The error is a *lambdaidem.StoreError. Its Reason is [lambdaidem.ReasonForeign] in two cases:
//
//   - The item is not a record of this package, but for example a part of a large answer.
//   - The function that wrote the record renames attributes, for example by Options.DataAttribute,
//     and this store's Options don't.
func (s *Store) Inspect(ctx context.Context, id string) (Inspected, error) {
	var out *dynamodb.GetItemOutput
	_, err := wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(s.table), Key: s.key(id), ConsistentRead: aws.Bool(true),
		})
		return err
	})
	if err != nil {
		return Inspected{}, failed(opInspect, wire.NotApplied, err)
	}
	inspected, err := s.inspected(ctx, out.Item, out.ResultMetadata)
	if err != nil {
		return Inspected{}, failed(opInspect, wire.NotApplied, err)
	}
	return inspected, nil
}

// opInspect is the value of StoreError.Op in errors from Inspect.
const opInspect = "inspect"

// inspected returns the record in DynamoDB's reply to a GetItem or an UpdateItem. attrs are
// the attributes of the item, and meta has the Date header of the reply.
func (s *Store) inspected(ctx context.Context, attrs attributes, meta middleware.Metadata) (Inspected, error) {
	now, ok := awsmiddleware.GetServerTime(meta)
	if !ok {
		return Inspected{}, errNoDate
	}
	inspected := clockOf(now).inspected(lambdaidem.Record{}, nil)
	if len(attrs) == 0 {
		return inspected, nil
	}
	itm, err := s.layout.parse(attrs)
	if err == nil {
		err = hidesExpiry(itm, attrs)
	}
	if err != nil {
		return Inspected{}, err
	}
	s.inspect(ctx, &inspected, itm)
	return inspected, nil
}

// inspect sets the fields of inspected from the item.
func (s *Store) inspect(ctx context.Context, inspected *Inspected, itm *item) {
	inspected.Record, inspected.Operations, inspected.Encrypted = itm.record(), itm.Operations, itm.Encrypts != ""
	if itm.sealsSteps() {
		var steps lambdaidem.Steps
		if steps, inspected.StepsUnread = s.openSteps(itm, s.findWith(ctx)); inspected.StepsUnread == nil {
			inspected.Record.Steps = steps
		}
	}
}
