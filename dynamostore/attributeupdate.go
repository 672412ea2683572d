package dynamostore

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// attributeUpdate describes a conditional UpdateItem: which attributes it sets or removes, and its
// condition.
type attributeUpdate struct {
	sets      updates           // the updates, such as completion, whose attributes are set or removed
	also      []string          // further attributes to set or remove, by their standard names
	condition string            // the ConditionExpression
	returns   types.ReturnValue // the ReturnValues of the request
}

// updateAttributes sends a conditional UpdateItem for a record. itm has the record's id and the new
// values, and c selects attributes. The UpdateItem sets each selected attribute to its value in
// itm, or removes the attribute if itm has no value for it.
//
// placeholders has the values of the condition's placeholders, and updateAttributes adds those of
// the UpdateExpression. The error is the SDK's.
func (s *Store) updateAttributes(ctx context.Context, c *attributeUpdate, itm *item, placeholders attributes) (out *dynamodb.UpdateItemOutput, fate wire.Fate, err error) {
	var set, remove []string
	names := s.layout.names(c.sets, c.condition)
	for i := range itemAttributes {
		a, column := &itemAttributes[i], &s.layout[i]
		if a.setBy&c.sets == 0 && !slices.Contains(c.also, a.standard) {
			continue
		}
		// Without Options.LeaseIndex, this store has no name for the index's partition key. But
		// another Lambda function, with that option, may have written the attribute under its
		// standard name. Use that name: the update then removes the attribute, and the record
		// leaves the index.
		if names[a.placeholder] = column.name; column.name == "" {
			names[a.placeholder] = a.standard
		}
		if v := valueOf(a.field(itm)); v != nil {
			set = append(set, column.assign)
			placeholders[column.value] = v
		} else {
			remove = append(remove, a.placeholder)
		}
	}
	in := &dynamodb.UpdateItemInput{
		TableName:                           aws.String(s.table),
		Key:                                 s.key(itm.ID),
		UpdateExpression:                    aws.String(updateOf(set, remove)),
		ConditionExpression:                 aws.String(c.condition),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           placeholders,
		ReturnValues:                        c.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              types.ReturnConsumedCapacityTotal,
	}
	fate, err = wire.Watch(ctx, func(ctx context.Context) (err error) {
		out, err = s.wire.SDK().UpdateItem(ctx, in)
		return err
	})
	return out, fate, err
}

// updateOf returns the UpdateExpression that makes the given assignments and removes the
// given attributes.
func updateOf(set, remove []string) string {
	var verbs []string
	if len(set) > 0 {
		verbs = append(verbs, "SET "+strings.Join(set, ", "))
	}
	if len(remove) > 0 {
		verbs = append(verbs, "REMOVE "+strings.Join(remove, ", "))
	}
	return strings.Join(verbs, " ")
}
