package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// recorded is a request that dynamostore has sent: a PutItem, an UpdateItem, or a
// TransactWriteItems with such actions.
type recorded struct {
	TransactItems      []action
	ClientRequestToken string

	TableName                           string
	Item, Key                           values
	ConditionExpression                 *string
	UpdateExpression                    *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           values
	ReturnValues                        types.ReturnValue
	ReturnValuesOnConditionCheckFailure types.ReturnValuesOnConditionCheckFailure
}

// action is one action of a transaction. Either Put or Update is set.
type action struct{ Put, Update *recorded }

// id returns the id of the record that the request writes.
func (r *recorded) id() string {
	if len(r.TransactItems) > 0 {
		if a := r.TransactItems[0]; a.Put != nil {
			return a.Put.id()
		}
		return r.TransactItems[0].Update.id()
	}
	if r.Item != nil {
		return text(r.Item["id"])
	}
	return text(r.Key["id"])
}

// parse decodes the body of a request. It returns an error for a field that it does not know, so
// that no part of a request is lost unnoticed.
func parse(body []byte) (*recorded, error) {
	var r recorded
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("a recorded request can't be repeated: %w; its body is %s", err, body)
	}
	return &r, nil
}

// values has attribute values by name, in the form of DynamoDB's JSON.
type values map[string]types.AttributeValue

// UnmarshalJSON decodes strings and numbers. It returns an error for any other type, which no
// recorded request contains.
func (v *values) UnmarshalJSON(text []byte) error {
	var all map[string]map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*v = make(values, len(all))
	for name, value := range all {
		s, isString := value["S"]
		n, isNumber := value["N"]
		switch {
		case len(value) == 1 && isString:
			(*v)[name] = &types.AttributeValueMemberS{Value: s}
		case len(value) == 1 && isNumber:
			(*v)[name] = &types.AttributeValueMemberN{Value: n}
		default:
			return fmt.Errorf("%s is neither a string nor a number: %v", name, value)
		}
	}
	return nil
}

// with returns a copy of the values with some of them replaced. It panics if a name is not among
// the values, because adding a value would change the request.
func (v values) with(replaced values) map[string]types.AttributeValue {
	out := maps.Clone(map[string]types.AttributeValue(v))
	for name, value := range replaced {
		if _, there := out[name]; !there {
			panic("bench: dynamostore sends no " + name + " any more")
		}
		out[name] = value
	}
	return out
}
