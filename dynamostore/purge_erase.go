package dynamostore

import (
	"context"
	"time"

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
