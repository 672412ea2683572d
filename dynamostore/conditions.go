package dynamostore

import (
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The conditions that the writes stand under, each named for what it means. A
// placeholder #x is an attribute's name, :x a value.
const (
	// isGone is rule L7: it has expired, and no lease on it is live. DynamoDB
	// deletes days late, so every condition asks. An attribute that is absent
	// compares as false: what has no expiration is never gone.
	isGone = "(#expiration <= :now_s AND (NOT #status = :in_progress OR #lease_end <= :now_ms))"

	// lockIsFree is rule L2: there is no record, or it is gone. An item without
	// a token is not ours and is never locked over, however long expired (D4).
	lockIsFree = "attribute_not_exists(#id) OR (attribute_exists(#token) AND " + isGone + ")"

	// isStillWhatWasSeen is rule L6: the takeover's record has the same token,
	// state and lease end as when it was judged. A completed record never
	// changes, whatever was seen (G3).
	isStillWhatWasSeen = "#token = :seen_token AND #status = :seen_state AND #lease_end = :seen_end" +
		" AND NOT #status = :completed AND NOT " + isGone

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

// clock gives isGone, and so every condition that contains it, its values.
func clock(now time.Time) attributes {
	return attributes{
		":now_s":       number(now.Unix()),
		":now_ms":      number(now.UnixMilli()),
		":in_progress": str(lambdaidem.InProgress),
	}
}

// seenValues gives isStillWhatWasSeen its values.
func seenValues(values attributes, seen *lambdaidem.Record) {
	values[":seen_token"] = str(seen.Token)
	values[":seen_state"] = str(seen.State)
	values[":seen_end"] = number(seen.LeaseEnd.UnixMilli())
	values[":completed"] = str(lambdaidem.Completed)
}
