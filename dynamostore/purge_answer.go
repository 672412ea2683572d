package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// removeAnswer removes the answer from a record by one conditional update. It reports false if the
// record has changed since it was read. The parameter old is the record as it was read. The update
// sets the attributes of the answer, and those in extra, to their values in next. An attribute
// without a value in next is removed.
//
// removeAnswer also stores the new token and the new value of the attribute "erasing" in old.
func (p *purge) removeAnswer(ctx context.Context, old, next *item, condition string, extra ...string) (bool, error) {
	attrs := append(extra, attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations)
	done, err := p.update(ctx, &attributeUpdate{also: attrs, condition: condition}, next, old.asSeen())
	// The purge's next writes compare the record's token, and delete the parts that the attribute
	// "erasing" lists.
	if old.Erasing = next.Erasing; next.Token != "" {
		old.Token = next.Token
	}
	return done, err
}

// erasedItem returns an item with the values that the purge writes to the record. The item has no
// answer. Its operations are those of the record, plus one that describes this purge.
func (p *purge) erasedItem(it *item, opKind OperationKind, token string, now time.Time) *item {
	next := &item{
		ID:      it.ID,
		Failure: lambdaidem.NoAnswer("the request was answered, and the answer was erased since"),
		Operations: withOperation(it.Operations, Operation{
			What: opKind, By: p.o.name, Reason: p.o.reason, At: now.Truncate(time.Millisecond), Attempt: int(it.Attempt.n), Token: token,
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
