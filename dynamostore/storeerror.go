package dynamostore

import (
	"fmt"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// failed returns the StoreError for a request that failed with err. The error's NotApplied
// is true if fate is wire.NotApplied.
func failed(op string, fate wire.Fate, err error) *lambdaidem.StoreError {
	reason := reasonOf(err)
	throttle, err := throttling(err)
	return &lambdaidem.StoreError{Op: op, Reason: reason, Throttle: throttle, NotApplied: fate == wire.NotApplied, Err: err}
}

// tooLarge returns the error of a call that has sent nothing, because its item would
// exceed DynamoDB's limit. size is the item's size in bytes.
func tooLarge(op string, size int) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
		Err: fmt.Errorf("the item would have %d bytes; DynamoDB keeps at most %d (400 KB, names included)", size, maxItemSize)}
}

// stepsTooLarge returns the error of SaveSteps for steps that would exceed maxStepsSize. SaveSteps
// has sent nothing. The parameter size is the size in bytes that the item would have with the
// steps.
func stepsTooLarge(size int) error {
	return &lambdaidem.StoreError{Op: opSaveSteps, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
		Err: fmt.Errorf("the item would have %d bytes with the steps; a record may have at most %d, so that %d of DynamoDB's 400 KB are left for what later attempts and operators add: "+
			"store large results elsewhere, and only their place in the step", size, maxStepsSize, reservedSize)}
}

// Values of StoreError.Op.
const (
	opAcquire   = "acquire"
	opComplete  = "complete"
	opRelease   = "release"
	opGet       = "get"
	opCommit    = "commit"
	opLoad      = "load"
	opSaveSteps = "save_steps"
	opHold      = "hold"
	opWarm      = "warm"
)
