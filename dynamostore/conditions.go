package dynamostore

// The conditions of writes, as ConditionExpressions. A placeholder #x stands for the name
// of an attribute, and :x stands for a value.
const (
	// isGone holds for a record that has expired and has no live lease. Such a record counts as
	// absent, but DynamoDB may delete it days late. So each condition under which an attempt writes
	// its record tests isGone.
	//
	// The TTL attribute #expiration is one hour later than the expiry of the record, and :now_s is
	// one hour later than the current time; see deletionOf. isGone never holds for a record without
	// a TTL attribute.
	isGone = "(#expiration <= :now_s AND (NOT #status = :in_progress OR #lease_end <= :now_ms))"

	// lockIsFree holds if there is no record, or if the record has expired and has no live
	// lease. It never holds for an existing item that has no token. Such an item is not a
	// record: it belongs to another tool, and must not be replaced even if it has expired.
	lockIsFree = "attribute_not_exists(#id) OR (attribute_exists(#token) AND " + isGone + ")"

	// isUnchanged holds if a record has the same token, state and lease end as when it was
	// read. It never holds for a completed record, because such a record must not change.
	isUnchanged = "#token = :seen_token AND #status = :seen_state AND #lease_end = :seen_end" +
		" AND NOT #status = :completed"

	// isStillWhatWasSeen holds if the record has not changed since it was read, and has not
	// expired. It is the condition of takeovers and of operators' changes.
	isStillWhatWasSeen = isUnchanged + " AND NOT " + isGone

	// isStillExpired holds if an expired record has not changed since it was read. The condition
	// fails if a guard with the policy lambdaidem.Hold has removed the record's expiry in the
	// meantime, because the record then waits for an operator.
	isStillExpired = isUnchanged + " AND " + isGone

	// isStillInProgress is like isStillWhatWasSeen, but holds only for a record in progress.
	isStillInProgress = isStillWhatWasSeen + " AND #status = :in_progress"

	// isStillWhatWasSettled holds if the record still has the answer that an operator gave, so that
	// Operator.Settle may replace the answer. Two comparisons with the record as it was read show
	// that:
	//
	//   - The token is the same. Each attempt and each Settle would have set a token of its own.
	//   - The list of operators' changes is the same. A purge that erased the answer would have
	//     added an entry.
	isStillWhatWasSettled = "#token = :seen_token AND #status = :completed AND #operations = :seen_operations AND NOT " + isGone

	// leaseIsOurs holds if the record is in progress under this attempt's token. It holds even if
	// the lease has ended: an attempt may finish late, as long as no other attempt has taken over
	// the record and replaced the token.
	leaseIsOurs = "#token = :token AND #status = :in_progress AND NOT " + isGone

	// claimIsFree holds if lockIsFree holds, or if this attempt already holds the lease. The
	// attempt already holds the lease if an earlier write that takes the lease was applied and the
	// reply was lost.
	claimIsFree = "(" + lockIsFree + ") OR (" + leaseIsOurs + ")"

	// claimIsStillFree is like claimIsFree, but for a write that takes over an existing record. It
	// holds in two cases:
	//
	//   - The record has not changed since the attempt read it, and has no steps. The write removes
	//     all steps, so it must fail if there are any.
	//   - This attempt already holds the lease.
	claimIsStillFree = "(" + isStillWhatWasSeen + " AND attribute_not_exists(#steps)) OR (" + leaseIsOurs + ")"

	// stepsGrow holds if the write stores more steps than the record has. Each save replaces all
	// steps of the record, and has more steps than the save before. If an older save arrives after
	// a newer one, it would remove the latest steps, so DynamoDB must refuse the older save.
	stepsGrow = "(attribute_not_exists(#steps) OR size(#steps) < :step_count)"

	// stepsAreAsMany is the condition of the write that replaces the steps of a record with the
	// same steps, encrypted under another key. The condition fails if another step was saved after
	// these steps were read, because the write would remove that step.
	stepsAreAsMany = "size(#steps) = :step_count"

	// neverTrue never holds. CheckTable and HealthCheck use it to test for write permission
	// without writing.
	neverTrue = "attribute_exists(#id) AND attribute_not_exists(#id)"
)
