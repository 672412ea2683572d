package dynamostore

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

	// isUnchanged holds if a record has the same token, state and lease end as when it was
	// read. It never holds for a completed record, because such a record must not change.
	isUnchanged = "#token = :seen_token AND #status = :seen_state AND #lease_end = :seen_end" +
		" AND NOT #status = :completed"

	// isStillWhatWasSeen holds if a record to take over has not changed since it was read,
	// and has not expired.
	isStillWhatWasSeen = isUnchanged + " AND NOT " + isGone

	// isStillExpired holds if an expired record has not changed since it was read. It does
	// not hold if a guard with policy Hold has removed the expiry since: the record then
	// waits for an operator.
	isStillExpired = isUnchanged + " AND " + isGone

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
