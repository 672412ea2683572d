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

// item is the DynamoDB item of a record. itemAttributes converts its fields to attribute
// values and back. The code for that is written by hand, except for Failure, because
// package attributevalue took three times as long, with 21 more allocations for each
// replay.
type item struct {
	ID          string
	Status      lambdaidem.State
	Token       string
	Attempt     integer
	LeaseEnd    integer // epoch milliseconds
	Expiration  integer // epoch seconds: see deletionOf
	Validation  string
	Scope       string
	StartedAt   integer // epoch milliseconds
	CompletedAt integer // epoch milliseconds
	Outcome     string
	Data        []byte
	Failure     *lambdaidem.Failure
	Encoding    optionalText
	Parts       *parts // nil without an encoding
	Steps       lambdaidem.Steps
	Operations  []Operation
	Erasing     *parts
	LeaseShard  string // set while the record is in progress, with Options.LeaseIndex
	Invocation  string
	LastFailure string // set when the record is released
	Bound       string
	Encrypts    string // the cipher of the store that took the lease; "" if that store does not encrypt answers
}

// claimed returns the item that Acquire writes.
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

// finish completes the item with a result. The result must come from pack.
func (it *item) finish(r lambdaidem.Result) {
	it.Status, it.LeaseShard = lambdaidem.Completed, ""
	it.dropSteps()
	it.Outcome = string(r.Outcome)
	it.CompletedAt = epochMillis(r.At)
	it.Expiration = deletionOf(r.Expires)
	it.Data = r.Value
	if it.Data == nil && r.Failure == nil {
		it.Data = []byte{} // parse refuses a completed record that has no answer at all
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

// giveBack releases the item. failure is the code of the attempt's error, or "" if it is
// unknown.
func (it *item) giveBack(expires time.Time, failure, bound string) {
	it.Status, it.LeaseShard = lambdaidem.Released, ""
	it.Expiration = deletionOf(expires)
	it.LastFailure, it.Bound = validUTF8(failure), validUTF8(bound)
}

// validUTF8 replaces invalid UTF-8, which DynamoDB does not store.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// heldBy reports whether the attempt with the given token holds the lease. It returns
// false for a nil item.
func (it *item) heldBy(token string) bool {
	return it != nil && it.Status == lambdaidem.InProgress && it.Token == token
}

// strange says why the item is not a valid record. It returns "" if the item is valid.
func (it *item) strange() string {
	switch {
	case it.ID == "":
		return "it has no " + attrID
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

// strangeCompletion returns why the item, whose status is completed, is not a valid
// record, or "" if it is valid.
//
// A completed record has an answer, a failure or parts of an answer. It has an expiration
// too, except if a purge completed the record while it was held. An item that lacks them
// was probably written with other attribute names than this store has (see
// Options.DataAttribute and Options.ExpirationAttribute). If such an item were valid, a
// purge would report the answer as erased and leave it in the table, and an operator
// would set an expiration that no function reads.
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

// strangeEncoding says what keeps an encoded answer from being read.
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

// record returns the item as the guard sees it.
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

// foreign returns the error of an item that is no record of ours, and why.
func foreign(why string, attrs attributes) error {
	return &foreignItemError{why: why + "; it has " + attributeNames(attrs)}
}

// foreignItemError is what parse says of an item that is no record of ours.
type foreignItemError struct{ why string }

func (e *foreignItemError) Error() string {
	return "the item under this id is not a record of this toolkit, or is damaged: " + e.why +
		"; if the table's attributes are renamed, give this store the names that its functions have" +
		"; otherwise delete the item if nothing uses it, or give this guard another namespace or table"
}

func isForeign(err error) bool {
	_, ok := errors.AsType[*foreignItemError](err)
	return ok
}

// A zero time is an absent attribute.

func epochMillis(t time.Time) integer {
	if t.IsZero() {
		return integer{}
	}
	return integer{t.UnixMilli(), true}
}

// deletionOf returns the value of the TTL attribute, in epoch seconds, for a record
// that expires at the given time. It is lambdaidem.KeptAfterExpiry later, because TTL
// deletes an item as soon as the attribute's time has come, and a request that was
// made before the record expired must still find it.
func deletionOf(expires time.Time) integer {
	if expires.IsZero() {
		return integer{}
	}
	return integer{expires.Add(lambdaidem.KeptAfterExpiry).Unix(), true}
}

func fromMillis(ms integer) time.Time {
	if !ms.there {
		return time.Time{}
	}
	return time.UnixMilli(ms.n).UTC()
}

// expiryOf returns when a record expires that has this TTL attribute.
func expiryOf(deletion integer) time.Time {
	if !deletion.there {
		return time.Time{}
	}
	return time.Unix(deletion.n, 0).Add(-lambdaidem.KeptAfterExpiry).UTC()
}
