package dynamostore

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type attributes = map[string]types.AttributeValue

// update is a conditional UpdateItem in the making.
type update struct {
	store     *Store
	key       attributes
	condition string
	names     map[string]string
	values    attributes
	sets      []string
	removes   []string
}

func (s *Store) newUpdate(id string, now time.Time, condition string, names map[string]string) *update {
	return &update{store: s, key: s.key(id), condition: condition, names: names, values: clock(now)}
}

// value gives the condition one of its values.
func (u *update) value(placeholder string, v types.AttributeValue) { u.values[placeholder] = v }

// set writes an attribute, or removes it if the value is nil.
func (u *update) set(standard string, v types.AttributeValue) {
	name := placeholders[standard]
	if v == nil {
		u.removes = append(u.removes, name)
		return
	}
	value := ":" + name[1:]
	u.sets = append(u.sets, name+" = "+value)
	u.values[value] = v
}

func (u *update) send(ctx context.Context, returned types.ReturnValue) (*dynamodb.UpdateItemOutput, error) {
	expression := "SET " + strings.Join(u.sets, ", ")
	if len(u.removes) > 0 {
		expression += " REMOVE " + strings.Join(u.removes, ", ")
	}
	return u.store.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           aws.String(u.store.table),
		Key:                                 u.key,
		UpdateExpression:                    aws.String(expression),
		ConditionExpression:                 aws.String(u.condition),
		ExpressionAttributeNames:            u.names,
		ExpressionAttributeValues:           u.values,
		ReturnValues:                        returned,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}
