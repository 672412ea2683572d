package dynamostore

import (
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// claimed returns the item to write for a claim: a record in progress under the claim's
// token. Its attempt number is 1, or one more than that of the record that the claim takes
// over.
func claimed(c lambdaidem.Claim) *item {
	attempt := int64(1)
	if c.Over != nil {
		attempt = int64(c.Over.Attempt) + 1
	}
	return &item{
		ID:         c.ID,
		Status:     lambdaidem.InProgress,
		Token:      c.Token,
		Attempt:    integer{attempt, true},
		LeaseEnd:   epochMillis(c.LeaseEnd),
		Expiration: deletionOf(c.Expires),
		Validation: validUTF8(c.Fingerprint),
		Scope:      validUTF8(c.Scope),
		StartedAt:  epochMillis(c.Now),
		Invocation: validUTF8(c.Invocation),
		Bound:      validUTF8(c.Bound),
	}
}

// finish changes the item to a completed record with the result r, and removes its steps. A
// result with an answer must come from pack, which decides how the answer is stored.
func (itm *item) finish(r lambdaidem.Result) {
	itm.Status, itm.LeaseShard = lambdaidem.Completed, ""
	itm.dropSteps()
	itm.Outcome = string(r.Outcome)
	itm.CompletedAt = epochMillis(r.At)
	itm.Expiration = deletionOf(r.Expires)
	itm.Data = r.Value
	if itm.Data == nil && r.Failure == nil {
		itm.Data = []byte{} // an empty answer; a completed record without an answer is invalid
	}
	if a, ok := r.Apart.(*apart); ok {
		itm.Data, itm.Encoding, itm.Parts = a.Data, optionalText{a.Encoding, true}, &a.Parts
	}
	if f := r.Failure; f != nil {
		itm.Failure = &lambdaidem.Failure{
			Code: lambdaidem.Code(validUTF8(string(f.Code))), Type: validUTF8(f.Type), Message: validUTF8(f.Message), Status: f.Status,
		}
	}
}

// release changes the item to a released record, which the next attempt can take over at once.
// failure is the error code of the attempt, or "" if the code is unknown. bound says why the record
// refuses a retry with a different payload, or is "" if the record accepts one.
func (itm *item) release(expires time.Time, failure, bound string) {
	itm.Status, itm.LeaseShard = lambdaidem.Released, ""
	itm.Expiration = deletionOf(expires)
	itm.LastFailure, itm.Bound = validUTF8(failure), validUTF8(bound)
}

// validUTF8 replaces invalid UTF-8, which DynamoDB does not store.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
