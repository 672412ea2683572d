package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

type attributes = map[string]types.AttributeValue

// write describes one kind of conditional write, such as taking the lease or completing a record.
// It contains everything in the request that is the same for all records.
type write struct {
	op        string            // StoreError.Op if the write fails
	sets      updates           // which attributes an UpdateItem sets or removes; 0 for a PutItem
	condition string            // the ConditionExpression
	names     map[string]string // the ExpressionAttributeNames of the UpdateExpression and the condition
	returns   types.ReturnValue // which item the response to a successful write contains: the old one or none
	head      string            // the beginning of the JSON of a separate PutItem or UpdateItem request
	action    string            // the beginning of the JSON of an action in a transaction
}

type writes struct{ lock, takeover, completion, release, saving, resealing, holding, claim, claimOver, probe write }

func (l *layout) writes(table string) writes {
	of := func(op string, sets updates, condition string, returns types.ReturnValue) write {
		w := write{op: op, sets: sets, condition: condition, names: l.names(sets, condition), returns: returns}
		w.encode(table, returns)
		return w
	}
	// The last argument of each call is the item that DynamoDB returns: the item before the write
	// (ALL_OLD), or none.
	//
	//   - Complete, Release and SaveSteps know only the lease. They build the record that they
	//     return from the old item and the new values.
	//   - A takeover needs the steps that the old attempt may have saved after the record was read.
	//   - The other writes need no item.
	return writes{
		lock:       of(opAcquire, 0, lockIsFree, types.ReturnValueNone),
		takeover:   of(opAcquire, takeover, isStillWhatWasSeen, types.ReturnValueAllOld),
		completion: of(opComplete, completion, leaseIsOurs, types.ReturnValueAllOld),
		release:    of(opRelease, release, leaseIsOurs, types.ReturnValueAllOld),
		saving:     of(opSaveSteps, saving, leaseIsOurs+" AND "+stepsGrow, types.ReturnValueAllOld),
		resealing:  of(opSaveSteps, saving, leaseIsOurs+" AND "+stepsAreAsMany, types.ReturnValueNone),
		holding:    of(opHold, holding, isStillInProgress, types.ReturnValueNone),
		claim:      of(opCommit, 0, claimIsFree, types.ReturnValueNone),
		claimOver:  of(opCommit, takeover|completion, claimIsStillFree, types.ReturnValueNone),
		probe:      of("", 0, neverTrue, types.ReturnValueNone),
	}
}

// encode sets the fields head and action to the JSON that is the same for all records, so that it
// is encoded only once. Both contain the table's name, the condition and the attribute names. The
// head of an UpdateItem also contains ReturnValues. An action can't, because a transaction returns
// no item.
func (w *write) encode(table string, returns types.ReturnValue) {
	var b []byte
	b = lowlevel.AppendString(append(b, `{"TableName":`...), table)
	b = lowlevel.AppendString(append(b, `,"ConditionExpression":`...), w.condition)
	b = lowlevel.AppendNames(append(b, `,"ExpressionAttributeNames":`...), w.names)
	const onFailure = `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`
	w.action = string(b) + onFailure
	if w.sets != 0 {
		b = lowlevel.AppendString(append(b, `,"ReturnValues":`...), string(returns))
	}
	w.head = string(b) + onFailure
}
