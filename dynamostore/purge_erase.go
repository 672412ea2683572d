package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// erase removes the answer from a completed record. The record keeps a list of the answer's parts
// until they are deleted. erase returns false if the record has changed since it was read.
func (p *purge) erase(ctx context.Context, itm *item, now time.Time) (bool, error) {
	return p.removeAnswer(ctx, itm, p.erasedItem(itm, OperationErased, itm.Token, now), isAsSeen)
}

// isErased reports whether the record is completed and has no answer to erase: the answer
// was erased, or there never was one (lambdaidem.NoAnswer).
func (itm *item) isErased() bool {
	return itm.Status == lambdaidem.Completed && saysNoAnswer(itm.Failure)
}

// saysNoAnswer reports whether f is the failure of a record that has no answer, as
// lambdaidem.NoAnswer returns it. Its code is ErrAnswerUnavailable, and it has no Type. A failure
// with this code and a Type is a handler's error: the handler made a guarded call, for example, and
// returned that call's error. The error's message may contain personal data, so a purge must erase
// it.
func saysNoAnswer(f *lambdaidem.Failure) bool {
	return f != nil && f.Code == lambdaidem.ErrAnswerUnavailable && f.Type == ""
}
