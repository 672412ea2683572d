package dynamostore

import (
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The conditions that the writes stand under, each named for what it means. A
// placeholder #x is an attribute's name, :x a value.
const (
	// isGone holds for a record that has expired and on which no lease is live. Every
	// condition asks, because DynamoDB deletes an expired item late, often by days.
	// :now_s is the TTL attribute of a record that expires now: see deletionOf. An
	// absent attribute compares as false, so a record without one is never gone.
	isGone = "(#expiration <= :now_s AND (NOT #status = :in_progress OR #lease_end <= :now_ms))"

	// lockIsFree is rule L2: there is no record, or it is gone. An item without
	// a token is not ours and is never locked over, however long expired (D4).
	lockIsFree = "attribute_not_exists(#id) OR (attribute_exists(#token) AND " + isGone + ")"

	// isStillWhatWasSeen is rule L6: the takeover's record has the same token,
	// state and lease end as when it was judged. A completed record never
	// changes, whatever was seen (G3).
	isStillWhatWasSeen = "#token = :seen_token AND #status = :seen_state AND #lease_end = :seen_end" +
		" AND NOT #status = :completed AND NOT " + isGone

	// isStillWhatWasSettled is for an operator who settles a record again: it has the
	// token that another operator's settling gave it, which no attempt ever has.
	isStillWhatWasSettled = "#token = :seen_token AND #status = :completed AND NOT " + isGone

	// leaseIsOurs is rule L3: in progress under our token, however long the
	// lease is over.
	leaseIsOurs = "#token = :token AND #status = :in_progress AND NOT " + isGone

	// claimIsFree is rule E4: the record can be locked, or is locked by this very
	// attempt, whose lock got no reply (X5).
	claimIsFree = "(" + lockIsFree + ") OR (" + leaseIsOurs + ")"

	// claimIsStillFree is the same over a record that was seen (L6) and has no steps,
	// which the claim would overwrite (E5).
	claimIsStillFree = "(" + isStillWhatWasSeen + " AND attribute_not_exists(#steps)) OR (" + leaseIsOurs + ")"

	// stepsGrow is rule E5: a save that comes late takes no step away. Under one
	// token each save has the steps of the one before it and more.
	stepsGrow = "(attribute_not_exists(#steps) OR size(#steps) < :step_count)"

	// neverTrue holds for no item that could be there: the table check asks
	// for permission to write with it, and writes nothing.
	neverTrue = "attribute_exists(#id) AND attribute_not_exists(#id)"
)

// given is what the placeholders of a condition stand for, but for attributes.
type given struct {
	now   time.Time          // :now_s, :now_ms and :in_progress, which isGone asks for, and so each condition
	token string             // :token; empty: the condition does not ask for it
	seen  *lambdaidem.Record // :seen_token, :seen_state, :seen_end and :completed; nil: it does not
	steps integer            // :step_count; absent: it does not
}

// attributes is the values as the SDK takes them.
func (g *given) attributes() attributes {
	values := attributes{
		":now_s":       number(deletionOf(g.now).n),
		":now_ms":      number(g.now.UnixMilli()),
		":in_progress": str(lambdaidem.InProgress),
	}
	if g.token != "" {
		values[":token"] = str(g.token)
	}
	if seen := g.seen; seen != nil {
		values[":seen_token"] = str(seen.Token)
		values[":seen_state"] = str(seen.State)
		values[":seen_end"] = number(seen.LeaseEnd.UnixMilli())
		values[":completed"] = str(lambdaidem.Completed)
	}
	if g.steps.there {
		values[":step_count"] = number(g.steps.n)
	}
	return values
}

// appendTo writes them as the members of an object.
func (g *given) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, `":now_s":{"N":"`...), deletionOf(g.now).n, 10)
	b = strconv.AppendInt(append(b, `"},":now_ms":{"N":"`...), g.now.UnixMilli(), 10)
	b = append(b, `"},":in_progress":{"S":"`+string(lambdaidem.InProgress)+`"}`...)
	if g.token != "" {
		b = lowlevel.AppendString(append(b, `,":token":{"S":`...), g.token)
		b = append(b, '}')
	}
	if seen := g.seen; seen != nil {
		b = lowlevel.AppendString(append(b, `,":seen_token":{"S":`...), seen.Token)
		b = lowlevel.AppendString(append(b, `},":seen_state":{"S":`...), string(seen.State))
		b = strconv.AppendInt(append(b, `},":seen_end":{"N":"`...), seen.LeaseEnd.UnixMilli(), 10)
		b = append(b, `"},":completed":{"S":"`+string(lambdaidem.Completed)+`"}`...)
	}
	if g.steps.there {
		b = strconv.AppendInt(append(b, `,":step_count":{"N":"`...), g.steps.n, 10)
		b = append(b, `"}`...)
	}
	return b
}
