package dynamostore

import (
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// mayBeSent returns an error if the transaction must no longer be sent, because it writes no record
// and was first sent tokenLife ago or earlier. DynamoDB might apply such a transaction a second
// time: it recognizes a repeated transaction for only 10 minutes. The first call of mayBeSent sets
// p.first to the current time. Call mayBeSent before every try, because Lambda can freeze the
// process between two tries.
func (p *prepared) mayBeSent() error {
	if p.first.IsZero() {
		p.first = time.Now()
	}
	if age, _ := elapsed.Since(p.first); p.records() == 0 && age >= tokenLife {
		return errTokenTooOld
	}
	return nil
}

// tokenLife is how long a transaction that writes no record may be sent again. Such a transaction
// has the enlisted writes of a handler that runs unguarded. DynamoDB recognizes a repeated
// transaction by its ClientRequestToken for only 10 minutes (AWS, "Amazon DynamoDB Transactions:
// How it works"). After that, DynamoDB would apply the transaction a second time. tokenLife is a
// minute less, for safety.
//
// A transaction that writes a record can be sent again at any time. It has a condition on the
// record, which no longer holds after the transaction was applied.
const tokenLife = 9 * time.Minute

var errTokenTooOld = errors.New("the transaction was first sent longer ago than DynamoDB surely remembers it: sent again, it might happen twice")
