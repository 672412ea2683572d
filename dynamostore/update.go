package dynamostore

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

type attributes = map[string]types.AttributeValue

// write describes a kind of conditional write: the part of its requests that is the same
// for every record.
type write struct {
	op        string            // StoreError.Op if the write fails
	sets      updates           // the attributes that an UpdateItem sets or removes; 0 for a PutItem
	condition string            // the ConditionExpression
	names     map[string]string // the ExpressionAttributeNames of the UpdateExpression and the condition
	returns   types.ReturnValue // which item the response to a successful write contains: the old one or none
	head      string            // what the write's JSON begins with if it is a request of its own
	action    string            // what the write's JSON begins with if it is an action of a transaction
}

type writes struct{ lock, takeover, completion, release, saving, resealing, claim, claimOver, probe write }

func (l *layout) writes(table string) writes {
	of := func(op string, sets updates, condition string, returns types.ReturnValue) write {
		w := write{op: op, sets: sets, condition: condition, names: l.names(sets, condition), returns: returns}
		w.action = w.headFor(table, "")
		w.head = w.headFor(table, returns)
		return w
	}
	// A completion, a release and a save return the old item (ALL_OLD). The methods of Store
	// return the whole record, but are given only the lease. They take the attempt's number,
	// fingerprint and start from the old item. The new item (ALL_NEW) has these too, but it
	// would also send back the answer or the steps that this write has just sent. Returning
	// an item consumes no capacity. A takeover returns the old item
	// for its steps: the old attempt may have saved steps after the record was read. A lock
	// returns no item, because the caller has the whole record.
	return writes{
		lock:       of(opAcquire, 0, lockIsFree, types.ReturnValueNone),
		takeover:   of(opAcquire, takeover, isStillWhatWasSeen, types.ReturnValueAllOld),
		completion: of(opComplete, completion, leaseIsOurs, types.ReturnValueAllOld),
		release:    of(opRelease, release, leaseIsOurs, types.ReturnValueAllOld),
		saving:     of(opSaveSteps, saving, leaseIsOurs+" AND "+stepsGrow, types.ReturnValueAllOld),
		resealing:  of(opSaveSteps, saving, leaseIsOurs+" AND "+stepsAreAsMany, types.ReturnValueNone),
		claim:      of(opCommit, 0, claimIsFree, types.ReturnValueNone),
		claimOver:  of(opCommit, takeover|completion, claimIsStillFree, types.ReturnValueNone),
		probe:      of("", 0, neverTrue, types.ReturnValueNone),
	}
}
