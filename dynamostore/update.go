package dynamostore

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type attributes = map[string]types.AttributeValue

// write is one of the conditional writes, as far as all its calls are alike.
type write struct {
	op        string  // the verb that it is part of, for StoreError.Op
	sets      updates // which attributes an UpdateItem sets or removes
	condition string
	names     map[string]string // what the placeholders of both stand for
	returns   types.ReturnValue // what it brings along when it has succeeded
}

type writes struct{ lock, takeover, completion, release, saving, claim, claimOver, probe write }

func (l *layout) writes() writes {
	of := func(op string, sets updates, condition string, returns types.ReturnValue) write {
		return write{op, sets, condition, l.names(sets, condition), returns}
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
		claim:      of(opCommit, 0, claimIsFree, types.ReturnValueNone),
		claimOver:  of(opCommit, 0, claimIsStillFree, types.ReturnValueNone),
		probe:      of("", 0, neverTrue, types.ReturnValueNone),
	}
}

// update sends a conditional UpdateItem to the item whose key is in attrs. Of
// attrs it writes what w sets, and removes from the item what is not in attrs.
// It adds to values, which has those of the condition.
func (s *Store) update(ctx context.Context, w *write, attrs, values attributes) (*dynamodb.UpdateItemOutput, error) {
	return s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           aws.String(s.table),
		Key:                                 attributes{s.layout.id(): attrs[s.layout.id()]},
		UpdateExpression:                    aws.String(s.layout.expression(w.sets, attrs, values)),
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        w.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}

// expression is the UpdateExpression of what sets says: what is in attrs is
// set, its value going into values, and the rest is removed.
func (l *layout) expression(sets updates, attrs, values attributes) string {
	const enough = 512 // bytes, for any of them
	var set, remove strings.Builder
	set.Grow(enough)
	remove.Grow(enough / 4)
	for i := range itemAttributes {
		a := &itemAttributes[i]
		if a.setBy&sets == 0 || l[i].name == "" {
			continue
		}
		if v := attrs[l[i].name]; v != nil {
			clause(&set, "SET ", l[i].assign)
			values[l[i].value] = v
		} else {
			clause(&remove, " REMOVE ", a.placeholder)
		}
	}
	set.WriteString(remove.String())
	return set.String()
}

// clause adds one more to those after the verb.
func clause(to *strings.Builder, verb, text string) {
	if to.Len() == 0 {
		to.WriteString(verb)
	} else {
		to.WriteString(", ")
	}
	to.WriteString(text)
}
