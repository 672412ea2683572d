package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// erase removes the answer from a completed record. The record keeps a list of the answer's
// parts until they are deleted.
func (p *purge) erase(ctx context.Context, it *item, now time.Time) (bool, error) {
	return p.removeAnswer(ctx, it, p.erasedItem(it, OperationErased, it.Token, now), isAsSeen)
}

// isErased reports whether the record is completed and has no answer to erase: the answer
// was erased, or there never was one (lambdaidem.NoAnswer).
func (it *item) isErased() bool {
	return it.Status == lambdaidem.Completed && it.Failure != nil && it.Failure.Code == lambdaidem.ErrAnswerUnavailable
}

// erasedItem returns an item with the attributes that the purge writes to the record. The item
// has no answer, and its list of operations ends with a new one, for this purge.
func (p *purge) erasedItem(it *item, what OperationKind, token string, now time.Time) *item {
	next := &item{
		ID:      it.ID,
		Failure: lambdaidem.NoAnswer("the request was answered, and the answer was erased since"),
		Operations: withOperation(it.Operations, Operation{
			What: what, By: p.o.name, Reason: p.o.reason, At: now.Truncate(time.Millisecond), Attempt: int(it.Attempt.n), Token: token,
		}),
		Erasing: it.Erasing,
	}
	if it.isErased() { // keep the old failure, because it may say that nobody knows what happened
		next.Failure = it.Failure
	}
	if it.Parts != nil && it.Parts.Count > 0 {
		next.Erasing = it.Parts
	}
	return next
}

// removeAnswer removes the answer from a record by one conditional update. The first item is the
// record as it was read, and the item next has the new values. The update changes the attributes
// that concern the answer, and also the attributes that the last parameter lists. If next has no
// value for an attribute, the update removes the attribute. removeAnswer reports false if the
// record has changed since it was read.
//
// removeAnswer also changes the first item in memory, for the writes that follow: it stores the
// new token, which they compare, and the new list of parts, which they delete.
func (p *purge) removeAnswer(ctx context.Context, it, next *item, condition string, also ...string) (bool, error) {
	attrs := append(also, attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations)
	done, err := p.update(ctx, &attributeUpdate{also: attrs, condition: condition}, next, it.asSeen())
	if it.Erasing = next.Erasing; next.Token != "" {
		it.Token = next.Token
	}
	return done, err
}

// deleteParts deletes the parts of an answer that was erased. The deletes need no condition:
// the key of a part contains a checksum of the answer, so a part of another answer has another
// key.
func (p *purge) deleteParts(ctx context.Context, it *item) error {
	of := it.Erasing
	for n := range of.Count {
		out, fate, err := p.o.s.deleteItem(ctx, &dynamodb.DeleteItemInput{Key: p.o.s.key(partID(it.ID, of.Checksum, n+1))})
		if err != nil {
			return failed(opPurge, fate, fmt.Errorf("part %d of %d of the answer: %w", n+1, of.Count, err))
		}
		p.count(func(sum *PurgeProgress) { sum.Parts++ })
		if err := p.spend(ctx, unitsOf(out.ConsumedCapacity)); err != nil {
			return err
		}
	}
	return nil
}

// removePartList removes the list of parts from a record after the parts were deleted.
func (p *purge) removePartList(ctx context.Context, it *item) (bool, error) {
	return p.updateAsSeen(ctx, &item{ID: it.ID}, it, attrErasing)
}
