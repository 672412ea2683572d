package dynamostore

import (
	"time"

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

// heldBy reports whether the record is in progress under the given fencing token. It
// returns false for a nil item.
func (itm *item) heldBy(token string) bool {
	return itm != nil && itm.Status == lambdaidem.InProgress && itm.Token == token
}

// record returns the item as a [lambdaidem.Record]. If the answer is compressed, encrypted or
// stored in parts, Record.Result has neither Value nor Failure. Result.Apart then describes how the
// answer is stored, so that [Store.Load] can return the answer. If the steps are encrypted,
// Record.Steps has their names with nil results.
func (itm *item) record() lambdaidem.Record {
	r := lambdaidem.Record{
		ID:          itm.ID,
		State:       itm.Status,
		Token:       itm.Token,
		Attempt:     int(itm.Attempt.n),
		LeaseEnd:    fromMillis(itm.LeaseEnd),
		Expires:     expiryOf(itm.Expiration),
		Fingerprint: itm.Validation,
		Scope:       itm.Scope,
		StartedAt:   fromMillis(itm.StartedAt),
		Invocation:  itm.Invocation,
		LastFailure: itm.LastFailure,
		Bound:       itm.Bound,
	}
	if itm.Status != lambdaidem.Completed {
		r.Steps = itm.Steps
		if itm.sealsSteps() {
			r.Steps = namesOf(itm.Steps)
		}
		return r
	}
	r.CompletedAt = fromMillis(itm.CompletedAt)
	r.Result = lambdaidem.Result{Outcome: lambdaidem.Outcome(itm.Outcome), At: r.CompletedAt, Expires: r.Expires}
	if itm.Parts != nil {
		r.Result.Apart = &apart{Encoding: itm.Encoding.s, Data: itm.Data, Parts: *itm.Parts}
		return r
	}
	r.Result.Value, r.Result.Failure = itm.Data, itm.Failure
	return r
}

// epochMillis returns t as the value of an attribute, in epoch milliseconds. If t is the zero time,
// the result stands for an absent attribute.
func epochMillis(t time.Time) integer {
	if t.IsZero() {
		return integer{}
	}
	return integer{t.UnixMilli(), true}
}

// fromMillis is the inverse of epochMillis.
func fromMillis(ms integer) time.Time {
	if !ms.isSet {
		return time.Time{}
	}
	return time.UnixMilli(ms.n).UTC()
}
