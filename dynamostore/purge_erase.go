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
	return it.Status == lambdaidem.Completed && saysNoAnswer(it.Failure)
}

// saysNoAnswer reports whether a failure was made by lambdaidem.NoAnswer, or by a guard that could
// not store an answer. Such a failure has no Type. A failure with the same code and a Type is an
// error of a handler, and its message may contain personal data. One example is an error that wraps
// the refusal of a guarded call whose own answer is unavailable.
func saysNoAnswer(f *lambdaidem.Failure) bool {
	return f != nil && f.Code == lambdaidem.ErrAnswerUnavailable && f.Type == ""
}
