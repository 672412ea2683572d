// Package snskey adds an idempotency key to an Amazon SNS message that a guarded handler
// sends, as the message attribute x-idempotency-key of type String. Package propagate
// describes the key.
//
//	input := &sns.PublishInput{…}
//	if err := snskey.Message(ctx, "receipt", input); err != nil {
//		return err
//	}
//	_, err := client.Publish(ctx, input)
//
// SNS delivers the attribute to Lambda functions and in its JSON envelope. To an SQS queue
// with raw message delivery, SNS delivers it as an attribute of the SQS message.
//
// If the MessageStructure of a message is "json", SNS drops all its attributes ("Amazon SNS
// message attributes"), in Publish and in PublishBatch. The functions of this package
// therefore return an error for such a message. SNS also drops the attributes on the way to
// HTTP and Firehose endpoints with raw message delivery. This package can't detect that.
//
// On a FIFO topic, [Options.Deduplicate] also sets the MessageDeduplicationId to the key.
// SNS then drops a duplicate by itself, but only within 5 minutes of the first message. A
// retry after a lease has ended, or a redrive, can come later than that. The consumer's
// guard recognizes a duplicate until its record expires.
package snskey

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/lambdaidem/toolkit/propagate"
	"github.com/lambdaidem/toolkit/propagate/internal/attribute"
)

// Options are the optional settings for one message, or for all entries of one batch.
type Options struct {
	// Deduplicate, if true, sets MessageDeduplicationId to the key. Set it only for FIFO
	// topics, because other topics refuse the field. A key that is passed to a function
	// ending in WithKey must then have at most 128 characters and no spaces. Default:
	// false, which leaves MessageDeduplicationId unchanged.
	Deduplicate bool
}

// Message adds an idempotency key to a message that a guarded handler sends. ctx is the
// handler's context, and the key is derived from name. Each message that the handler sends
// needs a different name, which must be the same in every attempt.
//
// The error is [propagate.ErrUnguarded] if ctx is not the context of a guarded handler. It
// is [propagate.ErrOtherKey] if the message already has another key, whatever the
// capitalization of the attribute's name. Message also returns an error if the message
// can't have the key, for example because it already has 10 other attributes. After an
// error the message is unchanged.
func Message(ctx context.Context, name string, in *sns.PublishInput, optFns ...func(*Options)) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return MessageWithKey(key, in, optFns...)
}

// MessageWithKey is like [Message], but adds the given key instead of a key that is derived
// from a name. It needs no guarded handler. It returns an error if the key is not valid;
// see [propagate.Check].
func MessageWithKey(key string, in *sns.PublishInput, optFns ...func(*Options)) error {
	return put(key, in.MessageStructure, &in.MessageAttributes, &in.MessageDeduplicationId, optFns)
}

// Entry is like [Message], for one entry of a batch. Each entry needs a different name.
// [Batch] derives these names from the entries' Ids.
func Entry(ctx context.Context, name string, e *types.PublishBatchRequestEntry, optFns ...func(*Options)) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return EntryWithKey(key, e, optFns...)
}

// EntryWithKey is like [MessageWithKey], for one entry of a batch.
func EntryWithKey(key string, e *types.PublishBatchRequestEntry, optFns ...func(*Options)) error {
	return put(key, e.MessageStructure, &e.MessageAttributes, &e.MessageDeduplicationId, optFns)
}

// Batch adds an idempotency key to each entry of a batch that a guarded handler sends. The
// key of an entry is derived from name and from the entry's Id. Each batch that the handler
// sends needs a different name.
//
// An entry must have the same Id in every attempt. So make the Id from the subject of the
// entry, such as an invoice number. An index into the list of entries is suitable only if
// the list is the same in every attempt.
//
// Batch returns an error if an entry has no Id, or if two entries have the same Id. Its
// other errors are those of [Message], with the Id of the entry. After an error no entry
// is changed.
func Batch(ctx context.Context, name string, in *sns.PublishBatchInput, optFns ...func(*Options)) error {
	entries := make([]types.PublishBatchRequestEntry, len(in.PublishBatchRequestEntries))
	seen := make(map[string]bool, len(entries))
	for i, e := range in.PublishBatchRequestEntries {
		id := aws.ToString(e.Id)
		if id == "" {
			return errors.New("snskey: an entry has no Id")
		}
		if seen[id] {
			return fmt.Errorf("snskey: two entries have the Id %s", id)
		}
		seen[id] = true
		if err := Entry(ctx, attribute.EntryName(name, id), &e, optFns...); err != nil {
			return fmt.Errorf("snskey: entry %s: %w", id, err)
		}
		entries[i] = e
	}
	in.PublishBatchRequestEntries = entries
	return nil
}

// put adds the key to the fields of a message or of an entry. It changes none of them if it
// returns an error.
func put(key string, structure *string, attributes *map[string]types.MessageAttributeValue, deduplication **string, optFns []func(*Options)) error {
	if aws.ToString(structure) == "json" {
		return errors.New(`snskey: MessageStructure is "json"; SNS drops all message attributes then, and the key with them; send one Message for all protocols`)
	}
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	with, err := attribute.Put(*attributes, key, valueOf, textOf)
	if err != nil {
		return err
	}
	if o.Deduplicate {
		id, err := attribute.DeduplicationID(*deduplication, key)
		if err != nil {
			return err
		}
		*deduplication = id
	}
	*attributes = with
	return nil
}

// valueOf returns a message attribute of type String that contains the key.
func valueOf(key string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String(attribute.DataType), StringValue: &key}
}

// textOf returns the text of a message attribute. It returns false if the attribute's type
// is not String.
func textOf(v types.MessageAttributeValue) (string, bool) {
	return aws.ToString(v.StringValue), aws.ToString(v.DataType) == attribute.DataType
}
