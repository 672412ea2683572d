package dynamostore

import (
	"fmt"
	"slices"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// strange returns the reason why the item is not a valid record, or "" if it is valid.
func (itm *item) strange() string {
	switch {
	case itm.ID == "":
		return "it has no " + attrID
	case itm.SortKey != "" && itm.SortKey != itm.ID:
		return "its sort key is not its " + attrID
	case itm.Token == "":
		return "it has no " + attrToken
	case itm.Attempt.n < 1:
		return "its " + attrAttempt + " is not 1 or more"
	case !itm.LeaseEnd.isSet:
		return "it has no " + attrLeaseEnd
	case itm.marksSteps() && itm.Parts == nil:
	case itm.Encoding.isSet, itm.Parts != nil:
		if reason := itm.strangeEncoding(); reason != "" {
			return reason
		}
	}
	switch itm.Status {
	case lambdaidem.InProgress:
		return itm.strangeSteps()
	case lambdaidem.Released:
		if !itm.Expiration.isSet {
			return "it is released and has no " + attrExpiration
		}
		return itm.strangeSteps()
	case lambdaidem.Completed:
		return itm.strangeCompletion()
	default:
		return fmt.Sprintf("its %s %q is none of ours", attrStatus, itm.Status)
	}
}

// strangeCompletion returns the reason why an item with the status completed is not a valid record,
// or "" if it is valid. An item that lacks an attribute was probably written by a store with other
// attribute names. If such an item counted as valid, a purge would report the answer as erased but
// leave it in the item, and an operator would set an expiration under a name that the Lambda
// functions do not read.
func (itm *item) strangeCompletion() string {
	switch o := lambdaidem.Outcome(itm.Outcome); {
	case o != lambdaidem.OutcomeSucceeded && o != lambdaidem.OutcomeFailed:
		return fmt.Sprintf("it is completed with %s %q, which is none of ours", attrOutcome, itm.Outcome)
	case itm.Data != nil && itm.Failure != nil:
		return "it has both " + attrData + " and " + attrFailure
	case itm.Data == nil && itm.Failure == nil && itm.Parts == nil:
		return "it is completed and has none of " + attrData + ", " + attrFailure + " and " + attrParts
	// A completed record needs an expiration. The exception is a record that a purge completed
	// while the record waited for an operator: such a record had no expiration.
	case !itm.Expiration.isSet && !itm.isErased():
		return "it is completed and has no " + attrExpiration
	}
	return ""
}

// strangeEncoding returns the reason why the item's encoded answer can't be read, or "" if
// it can.
func (itm *item) strangeEncoding() string {
	switch p := itm.Parts; {
	case itm.Encoding.isSet && !slices.Contains(encodings[:], itm.Encoding.s):
		return fmt.Sprintf("its %s %q is unknown to this version", attrEncoding, itm.Encoding.s)
	case itm.Encoding.isSet && itm.Status != lambdaidem.Completed:
		return fmt.Sprintf("it has %s %q and is not completed", attrEncoding, itm.Encoding.s)
	case !itm.Encoding.isSet || p == nil:
		return "it has one of " + attrEncoding + " and " + attrParts
	case itm.Failure != nil:
		return "it has both " + attrParts + " and " + attrFailure
	case (p.Count == 0) != (itm.Data != nil):
		return fmt.Sprintf("its %s are %d, and it has %s or none otherwise", attrParts, p.Count, attrData)
	}
	return ""
}
