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
// or "" if it is valid. A valid completed record has an answer, a failure or parts of an answer. It
// also has an expiration, unless a purge completed the record while it was waiting for an operator.
//
// If one of these attributes is missing, the store that wrote the item probably uses other
// attribute names (see Options.DataAttribute and Options.ExpirationAttribute). This store must
// refuse such an item. Otherwise a purge would report that the answer was erased but leave it in
// the table, and an operator would set an expiration that no function reads.
func (it *item) strangeCompletion() string {
	switch o := lambdaidem.Outcome(it.Outcome); {
	case o != lambdaidem.OutcomeSucceeded && o != lambdaidem.OutcomeFailed:
		return fmt.Sprintf("it is completed with %s %q, which is none of ours", attrOutcome, it.Outcome)
	case it.Data != nil && it.Failure != nil:
		return "it has both " + attrData + " and " + attrFailure
	case it.Data == nil && it.Failure == nil && it.Parts == nil:
		return "it is completed and has none of " + attrData + ", " + attrFailure + " and " + attrParts
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
