package dynamostore

import (
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The conditions of writes, as ConditionExpressions. A placeholder #x stands for the name
// of an attribute, and :x stands for a value.
const (
	// isGone holds for a record that has expired and has no live lease. Such a record counts
	// as absent, but DynamoDB may delete it days late. So each condition under which an
	// attempt writes its record contains isGone or its negation.
	//
	// #expiration is the TTL attribute, whose value is one hour later than the expiry of the
	// record; see deletionOf. It is compared with :now_s, which is one hour later than the
	// current time, so the hour cancels out. isGone never holds for a record without a TTL
	// attribute, because a comparison with an absent attribute is false.
	isGone = "(#expiration <= :now_s AND (NOT #status = :in_progress OR #lease_end <= :now_ms))"

	// lockIsFree holds if there is no record, or if the record has expired and has no live
	// lease. It never holds for an existing item that has no token. Such an item is not a
	// record: it belongs to another tool, and must not be replaced even if it has expired.
	lockIsFree = "attribute_not_exists(#id) OR (attribute_exists(#token) AND " + isGone + ")"

	// isStillWhatWasSeen holds if a record to take over has the same token, state and
	// lease end as when it was read. It never holds for a completed record, because such
	// a record must not change.
	isStillWhatWasSeen = "#token = :seen_token AND #status = :seen_state AND #lease_end = :seen_end" +
		" AND NOT #status = :completed AND NOT " + isGone

	// isStillInProgress is like isStillWhatWasSeen, but holds only for a record in progress.
	isStillInProgress = isStillWhatWasSeen + " AND #status = :in_progress"

	// isStillWhatWasSettled is the condition under which Operator.Settle replaces an answer
	// that an operator gave before. It holds if the record still has that answer. Two
	// comparisons show that:
	//
	//   - The token is the one that was read. Settle gives a record a token that no attempt
	//     has, so the condition fails if an attempt has completed the record.
	//   - The list of operators' changes is the one that was read. A purge, which erases
	//     the answer, keeps the token but adds an entry to the list.
	isStillWhatWasSettled = "#token = :seen_token AND #status = :completed AND #operations = :seen_operations AND NOT " + isGone

	// leaseIsOurs holds if the record is in progress under the caller's token. It holds
	// even if the lease has ended: an attempt may finish late, as long as no other attempt
	// has taken over the record and replaced the token.
	leaseIsOurs = "#token = :token AND #status = :in_progress AND NOT " + isGone

	// claimIsFree holds if the record can be locked, or if this attempt holds the lease
	// already. The latter happens if the reply to an earlier lock was lost.
	claimIsFree = "(" + lockIsFree + ") OR (" + leaseIsOurs + ")"

	// claimIsStillFree is like claimIsFree, but for a write that takes over an existing
	// record, which the attempt has read before. It holds in two cases:
	//
	//   - The record has not changed since that read, and has no steps. The write removes
	//     all steps, so it must fail if there are any.
	//   - This attempt holds the lease already.
	claimIsStillFree = "(" + isStillWhatWasSeen + " AND attribute_not_exists(#steps)) OR (" + leaseIsOurs + ")"

	// stepsGrow holds if the record has fewer steps than the request that saves steps. Each
	// save replaces all steps of the record, and has more steps than the save before. An
	// older save that arrives after a newer one would remove the latest steps, so DynamoDB
	// must refuse the older save.
	stepsGrow = "(attribute_not_exists(#steps) OR size(#steps) < :step_count)"

	// stepsAreAsMany is the condition of the write that replaces the steps of a record by
	// the same steps, encrypted under another key. It fails if a step was saved since
	// these steps were read, because the write would remove that step.
	stepsAreAsMany = "size(#steps) = :step_count"

	// neverTrue never holds. CheckTable and HealthCheck use it to test for write permission
	// without writing.
	neverTrue = "attribute_exists(#id) AND attribute_not_exists(#id)"
)

// given holds the values for the placeholders :x of a condition. A field that the
// condition does not use has its zero value.
type given struct {
	now   time.Time          // :now_s, :now_ms and :in_progress; every condition uses them, because it includes isGone
	token string             // :token
	seen  *lambdaidem.Record // :seen_token, :seen_state, :seen_end and :completed
	steps integer            // :step_count, the number of steps
}

// attributes returns the ExpressionAttributeValues as a map for the SDK.
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

// appendTo appends the ExpressionAttributeValues as members of a JSON object.
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
