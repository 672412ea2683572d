package wire

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
)

// An input is a request in the form of the SDK's types. The middleware of the user's client
// receives it in this form and may change it, for example to ask for the consumed capacity.
type input struct {
	params any                                           // a pointer to the SDK's type, such as *dynamodb.PutItemInput
	send   func(context.Context, *dynamodb.Client) error // sends the request through the SDK's client
}

// input decodes the body of a request into the SDK's type for its operation.
func (r *Request) input() (input, error) {
	switch r.Operation {
	case PutItem:
		in := &dynamodb.PutItemInput{}
		return input{in, func(ctx context.Context, sdk *dynamodb.Client) error {
			_, err := sdk.PutItem(ctx, in)
			return err //nolint:wrapcheck // it is the SDK's
		}}, decode(r.Body, in)
	case UpdateItem:
		in := &dynamodb.UpdateItemInput{}
		return input{in, func(ctx context.Context, sdk *dynamodb.Client) error {
			_, err := sdk.UpdateItem(ctx, in)
			return err //nolint:wrapcheck // it is the SDK's
		}}, decode(r.Body, in)
	case GetItem:
		in := &dynamodb.GetItemInput{}
		return input{in, func(ctx context.Context, sdk *dynamodb.Client) error {
			_, err := sdk.GetItem(ctx, in)
			return err //nolint:wrapcheck // it is the SDK's
		}}, decode(r.Body, in)
	case TransactWriteItems:
		in := &dynamodb.TransactWriteItemsInput{}
		return input{in, func(ctx context.Context, sdk *dynamodb.Client) error {
			_, err := sdk.TransactWriteItems(ctx, in)
			return err //nolint:wrapcheck // it is the SDK's
		}}, decode(r.Body, in)
	}
	return input{}, fmt.Errorf("the operation %q is not one of package wire", r.Operation)
}

// decode decodes the JSON of a request into dst, a pointer to the SDK's type. Package encoding/json
// can decode all members of the SDK's types except attribute values, because these are interfaces.
// So decode decodes the attribute values separately.
func decode(body []byte, dst any) error {
	var values struct {
		Item, Key, ExpressionAttributeValues attributes
		TransactItems                        []struct{ Put, Update, Delete, ConditionCheck *action }
	}
	if err := json.Unmarshal(body, &values); err != nil {
		return fmt.Errorf("decode the attribute values of a request: %w", err)
	}
	var others map[string]json.RawMessage
	if err := json.Unmarshal(body, &others); err != nil {
		return fmt.Errorf("decode a request: %w", err)
	}
	for _, name := range []string{"Item", "Key", "ExpressionAttributeValues", "TransactItems"} {
		delete(others, name)
	}
	rest, err := json.Marshal(others)
	if err == nil {
		err = json.Unmarshal(rest, dst)
	}
	if err != nil {
		return fmt.Errorf("decode a request: %w", err)
	}
	switch in := dst.(type) {
	case *dynamodb.PutItemInput:
		in.Item, in.ExpressionAttributeValues = values.Item, values.ExpressionAttributeValues
	case *dynamodb.UpdateItemInput:
		in.Key, in.ExpressionAttributeValues = values.Key, values.ExpressionAttributeValues
	case *dynamodb.GetItemInput:
		in.Key = values.Key
	case *dynamodb.TransactWriteItemsInput:
		for _, one := range values.TransactItems {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
				Put: one.Put.put(), Update: one.Update.update(), Delete: one.Delete.delete(), ConditionCheck: one.ConditionCheck.check(),
			})
		}
	}
	return nil
}

// action is the content of a Put, Update, Delete or ConditionCheck in a transaction. It has
// the members of all four.
type action struct {
	TableName, UpdateExpression, ConditionExpression *string
	Item, Key, ExpressionAttributeValues             attributes
	ExpressionAttributeNames                         map[string]string
	ReturnValuesOnConditionCheckFailure              types.ReturnValuesOnConditionCheckFailure
}

func (a *action) put() *types.Put {
	if a == nil {
		return nil
	}
	return &types.Put{TableName: a.TableName, Item: a.Item, ConditionExpression: a.ConditionExpression,
		ExpressionAttributeNames: a.ExpressionAttributeNames, ExpressionAttributeValues: a.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: a.ReturnValuesOnConditionCheckFailure}
}

func (a *action) update() *types.Update {
	if a == nil {
		return nil
	}
	return &types.Update{TableName: a.TableName, Key: a.Key, UpdateExpression: a.UpdateExpression, ConditionExpression: a.ConditionExpression,
		ExpressionAttributeNames: a.ExpressionAttributeNames, ExpressionAttributeValues: a.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: a.ReturnValuesOnConditionCheckFailure}
}

func (a *action) delete() *types.Delete {
	if a == nil {
		return nil
	}
	return &types.Delete{TableName: a.TableName, Key: a.Key, ConditionExpression: a.ConditionExpression,
		ExpressionAttributeNames: a.ExpressionAttributeNames, ExpressionAttributeValues: a.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: a.ReturnValuesOnConditionCheckFailure}
}

func (a *action) check() *types.ConditionCheck {
	if a == nil {
		return nil
	}
	return &types.ConditionCheck{TableName: a.TableName, Key: a.Key, ConditionExpression: a.ConditionExpression,
		ExpressionAttributeNames: a.ExpressionAttributeNames, ExpressionAttributeValues: a.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: a.ReturnValuesOnConditionCheckFailure}
}

// attributes is a map of attribute values that can be decoded from DynamoDB's JSON by
// package encoding/json.
type attributes map[string]types.AttributeValue

func (a *attributes) UnmarshalJSON(text []byte) error {
	r := lowlevel.NewReader(string(text))
	v, ok := r.Attributes()
	if !ok {
		return fmt.Errorf("%s is not a map of attribute values", text)
	}
	*a = v
	return nil
}
