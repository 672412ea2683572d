package dynamostore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// item is the DynamoDB item of a record, decoded. The list itemAttributes maps each field
// to its attribute. Most fields are encoded and decoded by hand, because package
// attributevalue took three times as long, with 21 more allocations for each replay.
type item struct {
	ID          string
	SortKey     string // the sort key that was read; "" if the table has no sort key, or if the item was not read
	Status      lambdaidem.State
	Token       string
	Attempt     integer
	LeaseEnd    integer // epoch milliseconds
	Expiration  integer // the TTL attribute, epoch seconds: an hour after the record expires
	Validation  string
	Scope       string
	StartedAt   integer // epoch milliseconds
	CompletedAt integer // epoch milliseconds
	Outcome     string
	Data        []byte
	Failure     *lambdaidem.Failure
	Encoding    optionalText
	Parts       *parts // describes an answer that is compressed, encrypted or stored in parts; nil if there is none
	Steps       lambdaidem.Steps
	Operations  []Operation
	Erasing     *parts // the parts of an erased answer that a purge has yet to delete; nil if there are none
	LeaseShard  string // the partition key in Options.LeaseIndex; "" without that index, or if the record is not in progress
	Invocation  string
	LastFailure string // why the last attempt failed; set when the record is released
	Bound       string // why a released record refuses a retry with a different payload; "" if it accepts one
	Encrypts    string // the cipher of the store that took the lease; "" if that store does not encrypt answers
}

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
func (it *item) finish(r lambdaidem.Result) {
	it.Status, it.LeaseShard = lambdaidem.Completed, ""
	it.dropSteps()
	it.Outcome = string(r.Outcome)
	it.CompletedAt = epochMillis(r.At)
	it.Expiration = deletionOf(r.Expires)
	it.Data = r.Value
	if it.Data == nil && r.Failure == nil {
		it.Data = []byte{} // an empty answer; a completed record without an answer is invalid
	}
	if a, ok := r.Apart.(*apart); ok {
		it.Data, it.Encoding, it.Parts = a.Data, optionalText{a.Encoding, true}, &a.Parts
	}
	if f := r.Failure; f != nil {
		it.Failure = &lambdaidem.Failure{
			Code: lambdaidem.Code(validUTF8(string(f.Code))), Type: validUTF8(f.Type), Message: validUTF8(f.Message), Status: f.Status,
		}
	}
}

// release changes the item to a released record, which the next attempt can take over at
// once. The parameter failure is the error code of the attempt, or "" if the code is unknown.
// The parameter bound is the reason why the record refuses a retry with a different payload,
// or "" if the record accepts such a retry.
func (it *item) release(expires time.Time, failure, bound string) {
	it.Status, it.LeaseShard = lambdaidem.Released, ""
	it.Expiration = deletionOf(expires)
	it.LastFailure, it.Bound = validUTF8(failure), validUTF8(bound)
}

// validUTF8 replaces invalid UTF-8, which DynamoDB does not store.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// heldBy reports whether the record is in progress under the given fencing token. It
// returns false for a nil item.
func (it *item) heldBy(token string) bool {
	return it != nil && it.Status == lambdaidem.InProgress && it.Token == token
}

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

func attributeNames(attrs map[string]types.AttributeValue) string {
	if len(attrs) == 0 {
		return "no attributes"
	}
	return "the attributes " + strings.Join(slices.Sorted(maps.Keys(attrs)), ", ")
}

// record returns the item as a [lambdaidem.Record]. If the answer is compressed,
// encrypted or stored in parts, Record.Result has no Value and no Failure. Result.Apart then
// describes how the answer is stored, and [Store.Load] returns the answer. If the steps are
// encrypted, Record.Steps has the names of the steps with nil results.
func (it *item) record() lambdaidem.Record {
	r := lambdaidem.Record{
		ID:          it.ID,
		State:       it.Status,
		Token:       it.Token,
		Attempt:     int(it.Attempt.n),
		LeaseEnd:    fromMillis(it.LeaseEnd),
		Expires:     expiryOf(it.Expiration),
		Fingerprint: it.Validation,
		Scope:       it.Scope,
		StartedAt:   fromMillis(it.StartedAt),
		Invocation:  it.Invocation,
		LastFailure: it.LastFailure,
		Bound:       it.Bound,
	}
	if it.Status != lambdaidem.Completed {
		r.Steps = it.Steps
		if it.sealsSteps() {
			r.Steps = namesOf(it.Steps)
		}
		return r
	}
	r.CompletedAt = fromMillis(it.CompletedAt)
	r.Result = lambdaidem.Result{Outcome: lambdaidem.Outcome(it.Outcome), At: r.CompletedAt, Expires: r.Expires}
	if it.Parts != nil {
		r.Result.Apart = &apart{Encoding: it.Encoding.s, Data: it.Data, Parts: *it.Parts}
		return r
	}
	r.Result.Value, r.Result.Failure = it.Data, it.Failure
	return r
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

// epochMillis returns t as the value of an attribute, in epoch milliseconds. For a zero time,
// the attribute is absent.
func epochMillis(t time.Time) integer {
	if t.IsZero() {
		return integer{}
	}
	return integer{t.UnixMilli(), true}
}

// deletionOf returns the value of the TTL attribute, in epoch seconds, for a record that
// expires at the given time. It is lambdaidem.KeptAfterExpiry (one hour) later than that
// time. DynamoDB may delete an item as soon as its TTL has passed, but a delayed request that
// was made before the record expired must still find the item. For a zero time, which means
// that the record never expires, the attribute is absent.
func deletionOf(expires time.Time) integer {
	if expires.IsZero() {
		return integer{}
	}
	return integer{expires.Add(lambdaidem.KeptAfterExpiry).Unix(), true}
}

// fromMillis is the inverse of epochMillis.
func fromMillis(ms integer) time.Time {
	if !ms.there {
		return time.Time{}
	}
	return time.UnixMilli(ms.n).UTC()
}

// expiryOf returns the time at which a record with this TTL attribute expires. It is the
// inverse of deletionOf.
func expiryOf(deletion integer) time.Time {
	if !deletion.there {
		return time.Time{}
	}
	return time.Unix(deletion.n, 0).Add(-lambdaidem.KeptAfterExpiry).UTC()
}
