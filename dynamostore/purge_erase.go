package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// erase removes the answer from a completed record. The record keeps a list of the answer's parts
// until they are deleted. erase reports false if the record has changed since it was read.
func (p *purge) erase(ctx context.Context, it *item, now time.Time) (bool, error) {
	return p.removeAnswer(ctx, it, p.erasedItem(it, OperationErased, it.Token, now), isAsSeen)
}

// isErased reports whether the record is completed and has no answer to erase: the answer
// was erased, or there never was one (lambdaidem.NoAnswer).
func (it *item) isErased() bool {
	return it.Status == lambdaidem.Completed && saysNoAnswer(it.Failure)
}

// saysNoAnswer reports whether a failure means that the record has no answer. lambdaidem.NoAnswer
// makes such a failure, and so does a guard that could not store an answer.
//
// A failure of this kind has the code ErrAnswerUnavailable and no Type. If a failure has the same
// code and a Type, a handler returned the error, and its message may contain personal data. For
// example, a handler may wrap the error of a guarded call whose stored answer is unavailable.
func saysNoAnswer(f *lambdaidem.Failure) bool {
	return f != nil && f.Code == lambdaidem.ErrAnswerUnavailable && f.Type == ""
}
