package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// removeAnswer removes the answer from a record with one conditional update. It returns false if
// the record has changed since it was read. oldItm is the record as it was read, and newItm has the
// attributes as they must be afterwards. The update sets or removes the attributes of the answer
// and those in extra.
//
// removeAnswer also copies the attribute "erasing", and the token if there is one, from newItm to
// oldItm, because the next steps of the purge use oldItm.
func (p *purge) removeAnswer(ctx context.Context, oldItm, newItm *item, condition string, extra ...string) (bool, error) {
	attrs := append(extra, attrData, attrFailure, attrEncoding, attrParts, attrErasing, attrOperations)
	done, err := p.update(ctx, &attributeUpdate{also: attrs, condition: condition}, newItm, oldItm.asSeen())
	// Bring oldItm up to date for the next steps of the purge: the conditions of their writes
	// compare the token, and deleteParts deletes the parts that the attribute "erasing" lists.
	if oldItm.Erasing = newItm.Erasing; newItm.Token != "" {
		oldItm.Token = newItm.Token
	}
	return done, err
}

// erasedItem returns an item with the values that the purge writes to the record itm. The new item
// has no answer. Its Operations are those of itm, plus one with the given token, which describes
// this purge.
func (p *purge) erasedItem(itm *item, opKind OperationKind, token string, now time.Time) *item {
	newItm := &item{
		ID:      itm.ID,
		Failure: lambdaidem.NoAnswer("the request was answered, and the answer was erased since"),
		Operations: withOperation(itm.Operations, Operation{
			What: opKind, By: p.o.name, Reason: p.o.reason, At: now.Truncate(time.Millisecond), Attempt: int(itm.Attempt.n), Token: token,
		}),
		Erasing: itm.Erasing,
	}
	if itm.isErased() { // keep the old failure, because it may say that nobody knows what happened
		newItm.Failure = itm.Failure
	}
	if itm.Parts != nil && itm.Parts.Count > 0 {
		newItm.Erasing = itm.Parts
	}
	return newItm
}
