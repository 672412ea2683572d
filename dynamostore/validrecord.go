package dynamostore

import (
	"fmt"
	"slices"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// strange returns the reason why the item is not a valid record, or "" if it is valid.
func (it *item) strange() string {
	switch {
	case it.ID == "":
		return "it has no " + attrID
	case it.SortKey != "" && it.SortKey != it.ID:
		return "its sort key is not its " + attrID
	case it.Token == "":
		return "it has no " + attrToken
	case it.Attempt.n < 1:
		return "its " + attrAttempt + " is not 1 or more"
	case !it.LeaseEnd.there:
		return "it has no " + attrLeaseEnd
	case it.marksSteps() && it.Parts == nil:
	case it.Encoding.there, it.Parts != nil:
		if why := it.strangeEncoding(); why != "" {
			return why
		}
	}
	switch it.Status {
	case lambdaidem.InProgress:
		return it.strangeSteps()
	case lambdaidem.Released:
		if !it.Expiration.there {
			return "it is released and has no " + attrExpiration
		}
		return it.strangeSteps()
	case lambdaidem.Completed:
		return it.strangeCompletion()
	default:
		return fmt.Sprintf("its %s %q is none of ours", attrStatus, it.Status)
	}
}

// strangeCompletion returns the reason why an item with the status completed is not a valid record,
// or "" if it is valid. If an attribute is missing, a store with other attribute names probably
// wrote the item. In such an item, a purge would leave the answer but report it as erased, and an
// operator would set an expiration that no function reads.
func (it *item) strangeCompletion() string {
	switch o := lambdaidem.Outcome(it.Outcome); {
	case o != lambdaidem.OutcomeSucceeded && o != lambdaidem.OutcomeFailed:
		return fmt.Sprintf("it is completed with %s %q, which is none of ours", attrOutcome, it.Outcome)
	case it.Data != nil && it.Failure != nil:
		return "it has both " + attrData + " and " + attrFailure
	case it.Data == nil && it.Failure == nil && it.Parts == nil:
		return "it is completed and has none of " + attrData + ", " + attrFailure + " and " + attrParts
	// A purge may complete a record that waits for an operator, and such a record has no
	// expiration.
	case !it.Expiration.there && !it.isErased():
		return "it is completed and has no " + attrExpiration
	}
	return ""
}

// strangeEncoding returns the reason why the item's encoded answer can't be read, or "" if
// it can.
func (it *item) strangeEncoding() string {
	switch p := it.Parts; {
	case it.Encoding.there && !slices.Contains(encodings[:], it.Encoding.s):
		return fmt.Sprintf("its %s %q is unknown to this version", attrEncoding, it.Encoding.s)
	case it.Encoding.there && it.Status != lambdaidem.Completed:
		return fmt.Sprintf("it has %s %q and is not completed", attrEncoding, it.Encoding.s)
	case !it.Encoding.there || p == nil:
		return "it has one of " + attrEncoding + " and " + attrParts
	case it.Failure != nil:
		return "it has both " + attrParts + " and " + attrFailure
	case (p.Count == 0) != (it.Data != nil):
		return fmt.Sprintf("its %s are %d, and it has %s or none otherwise", attrParts, p.Count, attrData)
	}
	return ""
}
