package dynamostore

import (
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// mayBeSent returns errTooLate if the time for sending the transaction is over: maxResend or, with
// a lease, maxResendWithLease. Call mayBeSent before every try, because Lambda can freeze the
// process between two tries.
func (p *prepared) mayBeSent() error {
	longest := maxResend
	if withLease := !p.completion.Alone && p.completion.Claim == nil; withLease {
		longest = maxResendWithLease
	}
	if age, _ := elapsed.Since(p.startedAt); age >= longest {
		return errTooLate
	}
	return nil
}

// maxResend is how long the transaction of an attempt without a lease may be sent after Commit
// began to prepare it: 9 minutes. After that, DynamoDB might apply it a second time:
//
//   - If the transaction writes no record, DynamoDB recognizes it only by its ClientRequestToken,
//     and only for 10 minutes (AWS, "Amazon DynamoDB Transactions: How it works").
//   - If the transaction claims the record, the record refuses a repetition only until TTL deletes
//     the record; see [lambdaidem.KeptAfterExpiry].
const maxResend = 9 * time.Minute

// maxResendWithLease is how long the transaction of an attempt with a lease may be sent after
// Commit began to prepare it. Such a transaction is never applied twice, because it requires a
// record in progress and completes the record. The limit is for operators who restore a table: they
// must know when no transaction can arrive any more. This is 30 minutes after Commit began, because
// AWS rejects a request that arrives more than 15 minutes after it was signed.
const maxResendWithLease = 15 * time.Minute

var errTooLate = errors.New("the transaction is too old to be sent: the process was frozen, or DynamoDB did not reply for minutes")
