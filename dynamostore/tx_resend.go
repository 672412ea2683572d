package dynamostore

import (
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// mayBeSent returns an error if the transaction was first sent maxResend ago or earlier, because
// DynamoDB might then apply it a second time. The first call sets p.first. Call mayBeSent before
// every try, because Lambda can freeze the process between two tries.
func (p *prepared) mayBeSent() error {
	if p.first.IsZero() {
		p.first = time.Now()
	}
	withLease := !p.completion.Alone && p.completion.Claim == nil
	if age, _ := elapsed.Since(p.first); !withLease && age >= maxResend {
		return errSentTooLongAgo
	}
	return nil
}

// maxResend is how long the transaction of an attempt without a lease may be sent again: 9 minutes.
//
//   - If the transaction writes no record, DynamoDB recognizes it only by its ClientRequestToken,
//     and only for 10 minutes (AWS, "Amazon DynamoDB Transactions: How it works").
//   - If the transaction claims the record, the record refuses a repetition only until TTL deletes
//     the record; see [lambdaidem.KeptAfterExpiry].
//
// With a lease there is no limit: the record must be in progress, and a deleted record is not.
const maxResend = 9 * time.Minute

var errSentTooLongAgo = errors.New("the transaction was first sent more than 9 minutes ago: if it is sent again, DynamoDB might apply it twice")
