//go:build !race

package simulator

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// inPart returns a Mutation.Request that changes the item of a part.
func inPart(change func(item map[string]map[string]any)) func(string, []byte) []byte {
	return func(op string, body []byte) []byte {
		if describe(op, body) != "write part" {
			return body
		}
		var doc map[string]json.RawMessage
		var item map[string]map[string]any
		must(json.Unmarshal(body, &doc), json.Unmarshal(doc["Item"], &item))
		change(item)
		doc["Item"] = marshal(item)
		return marshal(doc)
	}
}

// partMutations are mistakes with large answers.
var partMutations = []mistake{
	{Mutation{Name: "part of another attempt", Request: inPart(func(item map[string]map[string]any) {
		item["part"]["M"].(map[string]any)["token"] = map[string]string{"S": "another"}
	})}, []Check{CheckWhole}},
	{Mutation{Name: "part expiring before its record", Request: inPart(func(item map[string]map[string]any) {
		end, err := strconv.ParseInt(item["expiration"]["N"].(string), 10, 64)
		must(err)
		item["expiration"]["N"] = strconv.FormatInt(end-2*60*60, 10)
	})}, []Check{CheckPartOutlives}},
	{Mutation{Name: "part not there when the record is completed", Request: inPart(func(item map[string]map[string]any) {
		item["id"]["S"] = item["id"]["S"].(string) + "#late"
	})}, []Check{CheckWhole}},
	{Mutation{Name: "half an answer taken for the whole", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return halved{wrapped{Store: s}}
	}}, []Check{CheckReplay}},
	{Mutation{Name: "lost answer made up", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return forgetful{wrapped{Store: s}}
	}}, []Check{CheckReplay, CheckWhole}},
}

// halved loses half of each answer that it loads.
type halved struct{ wrapped }

func (h halved) Load(ctx context.Context, rec lambdaidem.Record) (lambdaidem.Result, error) {
	result, err := h.wrapped.Load(ctx, rec)
	var answer map[string]any
	if err == nil && json.Unmarshal(result.Value, &answer) == nil {
		body, _ := answer["body"].(string)
		answer["body"] = body[:len(body)/2]
		result.Value = marshal(answer)
	}
	return result, err
}

// forgetful makes up an answer if the answer is lost.
type forgetful struct{ wrapped }

func (f forgetful) Load(ctx context.Context, rec lambdaidem.Record) (lambdaidem.Result, error) {
	result, err := f.wrapped.Load(ctx, rec)
	if err != nil {
		result, err = lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(`{"statusCode":201,"body":""}`)}, nil
	}
	return result, err
}
