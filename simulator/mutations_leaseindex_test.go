//go:build !race

package simulator

import (
	"encoding/json"
	"strings"
)

// keepShard returns a Mutation.Request that keeps one kind of write from changing the shard.
func keepShard(what string) func(string, []byte) []byte {
	return func(op string, body []byte) []byte {
		if describe(op, body) != what {
			return body
		}
		var doc map[string]json.RawMessage
		must(json.Unmarshal(body, &doc))
		if op == "TransactWriteItems" {
			var actions []map[string]map[string]json.RawMessage
			must(json.Unmarshal(doc["TransactItems"], &actions))
			if of := actions[0]["Update"]; of != nil && parseTransaction(body).record != noRecord {
				withoutShard(of)
			}
			doc["TransactItems"] = marshal(actions)
			return marshal(doc)
		}
		withoutShard(doc)
		return marshal(doc)
	}
}

// withoutShard removes the shard from an update.
func withoutShard(doc map[string]json.RawMessage) {
	var update string
	names, values := map[string]string{}, map[string]json.RawMessage{}
	must(json.Unmarshal(doc["UpdateExpression"], &update), json.Unmarshal(doc["ExpressionAttributeNames"], &names), json.Unmarshal(doc["ExpressionAttributeValues"], &values))
	for _, part := range []string{", #lease_shard = :lease_shard", ", #lease_shard", " REMOVE #lease_shard"} {
		update = strings.Replace(update, part, "", 1)
	}
	delete(names, "#lease_shard")
	delete(values, ":lease_shard")
	doc["UpdateExpression"], doc["ExpressionAttributeNames"], doc["ExpressionAttributeValues"] = marshal(update), marshal(names), marshal(values)
}

// leaseIndexMutations are mistakes with the index of leases.
var leaseIndexMutations = []mistake{
	{Mutation{Name: "shard kept by a completion", Request: keepShard("complete")}, []Check{CheckLeaseShard}},
	{Mutation{Name: "shard kept by a completion with enlisted writes", Request: keepShard("commit")}, []Check{CheckLeaseShard}},
	{Mutation{Name: "shard kept by a release", Request: keepShard("release")}, []Check{CheckLeaseShard}},
	{Mutation{Name: "shard not put back by a takeover", Request: keepShard("take over")}, []Check{CheckLeaseShard}},
	{Mutation{Name: "shard not written by a lock", Request: func(op string, body []byte) []byte {
		if describe(op, body) != "acquire" {
			return body
		}
		var doc, item map[string]json.RawMessage
		must(json.Unmarshal(body, &doc), json.Unmarshal(doc["Item"], &item))
		delete(item, leaseShard)
		doc["Item"] = marshal(item)
		return marshal(doc)
	}}, []Check{CheckLeaseShard}},
}
