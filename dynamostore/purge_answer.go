package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// removeAnswer removes the answer from a record by one conditional update. The parameter old is the
// record as it was read, and the parameter next has the new values. The update writes the
// attributes that concern the answer, and the attributes listed in extra. If next has no value for
// an attribute, the update removes the attribute. removeAnswer reports false if the record has
// changed since it was read.
//
// removeAnswer also changes the item old, for the writes of the purge that follow. It stores the
// new token in old, because these writes compare the record's token. It also stores the new value
// of the attribute "erasing", because these writes delete the parts that the attribute lists.
func (p *purge) removeAnswer(ctx context.Context, old, next *item, condition string, extra ...string) (bool, error) {
	attrs := append(extra, attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations)
	done, err := p.update(ctx, &attributeUpdate{also: attrs, condition: condition}, next, old.asSeen())
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
