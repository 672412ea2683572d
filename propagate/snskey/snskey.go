// Package snskey puts the idempotency key on messages to Amazon SNS, as the
// message attribute x-idempotency-key of type String. See package propagate for
// which key that is.
//
//	input := &sns.PublishInput{…}
//	if err := snskey.Message(ctx, "receipt", input); err != nil {
//		return err
//	}
//	_, err := client.Publish(ctx, input)
//
// SNS hands the attribute on to Lambda functions and in its envelope; an SQS queue
// with raw message delivery gets it as an attribute of its own message. SNS drops all
// attributes of a message whose MessageStructure is "json" ("Amazon SNS message
// attributes"), in Publish and in PublishBatch, so that is an error here. It also drops
// them on the way to HTTP and Firehose endpoints with raw message delivery, which this
// package can't see.
//
// On a FIFO topic [Options.Deduplicate] makes the key the MessageDeduplicationId too.
// SNS then drops a repetition by itself, but only within 5 minutes of the first
// one; a retry after a lease has ended, or a redrive, comes later. The consumer's
// guard remembers for as long as its TTL says.
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

// Options are settings of one message, or of the entries of one batch.
type Options struct {
	// Deduplicate sets MessageDeduplicationId to the key, for FIFO topics; other
	// topics refuse it. It can have 128 characters and no spaces, and a key that
	// doesn't fit is an error; downstream keys fit. Default: false, the field is left
	// alone.
	Deduplicate bool
}

// Message puts the key of what a guarded handler sends under name on a message. Two
// messages need two names.
//
// The error is [propagate.ErrUnguarded] outside of a guarded handler,
// [propagate.ErrOtherKey] if another key is there already, whatever the capitalization
// of its name, or says what the message can't have: more than 10 attributes, for one.
// The message is unchanged then.
func Message(ctx context.Context, name string, in *sns.PublishInput, optFns ...func(*Options)) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return MessageWithKey(key, in, optFns...)
}

// MessageWithKey puts a key from elsewhere on a message. Its errors are Message's.
func MessageWithKey(key string, in *sns.PublishInput, optFns ...func(*Options)) error {
	return put(key, in.MessageStructure, &in.MessageAttributes, &in.MessageDeduplicationId, optFns)
}

// Entry puts the key of what a guarded handler sends under name on one entry of a
// batch. Each entry needs a name of its own; [Batch] sees to that. Its errors are
// Message's.
func Entry(ctx context.Context, name string, e *types.PublishBatchRequestEntry, optFns ...func(*Options)) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return EntryWithKey(key, e, optFns...)
}

// EntryWithKey puts a key from elsewhere on one entry of a batch. Its errors are
// Message's.
func EntryWithKey(key string, e *types.PublishBatchRequestEntry, optFns ...func(*Options)) error {
	return put(key, e.MessageStructure, &e.MessageAttributes, &e.MessageDeduplicationId, optFns)
}

// Batch puts a key on each entry of a batch: that of the name that is made of name
// and of the entry's Id. So an Id must say which entry it is, the same in every
// attempt: an invoice's number, say. A place in the list will do only if the list
// is always the same. Two batches of one handler need two names.
//
// The errors are Message's, with the Id before them, or say that an Id is missing or
// not the only one of its kind. No entry is changed then.
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

func valueOf(key string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String(attribute.DataType), StringValue: &key}
}

func textOf(v types.MessageAttributeValue) (string, bool) {
	return aws.ToString(v.StringValue), aws.ToString(v.DataType) == attribute.DataType
}
