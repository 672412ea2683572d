package dynamostore

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

type attributes = map[string]types.AttributeValue

// write is one of the conditional writes, as far as all its calls are alike.
type write struct {
	op        string  // the verb that it is part of, for StoreError.Op
	sets      updates // which attributes an UpdateItem sets or removes
	condition string
	names     map[string]string // what the placeholders of both stand for
	returns   types.ReturnValue // what it brings along when it has succeeded
	head      string            // what its requests begin with, in JSON
	action    string            // what its action of a transaction begins with, in JSON
}

type writes struct{ lock, takeover, completion, release, saving, resealing, claim, claimOver, probe write }

func (l *layout) writes(table string) writes {
	of := func(op string, sets updates, condition string, returns types.ReturnValue) write {
		w := write{op: op, sets: sets, condition: condition, names: l.names(sets, condition), returns: returns}
		w.action = w.headFor(table, "")
		w.head = w.headFor(table, returns)
		return w
	}
	// The end of an attempt asks for the item as it was (ALL_OLD): a lease knows
	// neither the attempt's number nor the fingerprint, the scope or the start,
	// and the record that is returned has them. As it is now (ALL_NEW), the item
	// would carry the answer back that has just been sent. Neither costs
	// capacity. So does a takeover, for the steps: the old attempt may have saved
	// some since it was seen. A lock knows all of its record, and asks for nothing.
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
