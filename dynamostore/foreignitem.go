package dynamostore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// strangeCompletion returns the reason why the item, whose status is completed, is not a
// valid record, or "" if it is valid. A valid completed record has an answer, a failure or
// parts of an answer. It also has an expiration, unless a purge completed the record while it
// was waiting for an operator.
//
// If one of these attributes is missing, the store that wrote the item probably uses other
// attribute names (see Options.DataAttribute and Options.ExpirationAttribute). This store must
// refuse such an item. Otherwise a purge would leave the answer in the table and report it as
// erased, and an operator would set an expiration that no function reads.
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

// foreign returns a foreignItemError, which says why the item is not a valid record and which
// attributes it has.
func foreign(why string, attrs attributes) error {
	return &foreignItemError{why: why + "; it has " + attributeNames(attrs)}
}

// foreignItemError is the error for an item that is damaged, or that another tool or a
// store with other attribute names wrote.
type foreignItemError struct{ why string }

func (e *foreignItemError) Error() string {
	return "the item under this id is not a record of this toolkit, or is damaged: " + e.why +
		"; if the table's attributes are renamed, give this store the names that its functions have" +
		"; otherwise don't touch it, because a retry of its request may run a second time, and see docs/operate.md, \"An answer is lost\""
}

func isForeign(err error) bool {
	_, ok := errors.AsType[*foreignItemError](err)
	return ok
}

func attributeNames(attrs map[string]types.AttributeValue) string {
	if len(attrs) == 0 {
		return "no attributes"
	}
	return "the attributes " + strings.Join(slices.Sorted(maps.Keys(attrs)), ", ")
}

// hidesExpiry returns an error if the item seems to come from a store with another
// Options.ExpirationAttribute. The item then has no attribute with this store's name for the
// expiration, but another attribute whose value looks like an expiration.
//
// The error protects operators from a mistake. Under policy Hold, a record without an expiration
// waits for an operator's decision. An operator would take this item for such a record, and would
// set an expiration that the Lambda functions don't read.
func hidesExpiry(it *item, attrs attributes) error {
	if it.Expiration.there {
		return nil
	}
	leaseEnd := fromMillis(it.LeaseEnd)
	for name, v := range attrs {
		var seconds integer
		if takeValue(&seconds, v) != "" {
			continue
		}
		// Accept only times in the hundred years after the end of the lease. This excludes
		// the record's times in epoch milliseconds: read as seconds, they are thousands of
		// years in the future.
		if at := expiryOf(seconds); at.After(leaseEnd) && at.Before(leaseEnd.AddDate(100, 0, 0)) {
			return foreign(fmt.Sprintf("it has no %s, but %q may be the expiration under another name", attrExpiration, name), attrs)
		}
	}
	return nil
}
