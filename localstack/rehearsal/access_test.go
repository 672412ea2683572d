package rehearsal_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

func TestAccess_KnowsWhatARequestDoesToARecord(t *testing.T) {
	for _, test := range []struct {
		operation, body string
		want            rehearsal.AccessKind
	}{
		{"PutItem", `{"Item":{"id":{"S":"lambdaidem#a"},"status":{"S":"INPROGRESS"}},"ExpressionAttributeNames":{"#status":"status"}}`, rehearsal.Lock},
		{"PutItem", `{"Item":{"id":{"S":"lambdaidem#a"},"state":{"S":"INPROGRESS"}},"ExpressionAttributeNames":{"#status":"state"}}`, rehearsal.Lock},
		{"UpdateItem", `{"Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"INPROGRESS"},":completed":{"S":"COMPLETED"}}}`, rehearsal.Takeover},
		{"UpdateItem", `{"Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"COMPLETED"}}}`, rehearsal.Completion},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"orders","Item":{"id":{"S":"1"}}}},{"Update":{"TableName":"records","Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"COMPLETED"}}}}]}`, rehearsal.Completion},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"Item":{"id":{"S":"lambdaidem#a"},"status":{"S":"COMPLETED"}},"ExpressionAttributeNames":{"#status":"status"}}}]}`, rehearsal.Completion},
		{"UpdateItem", `{"Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"RELEASED"}}}`, rehearsal.Release},
		{"UpdateItem", `{"Key":{"id":{"S":"lambdaidem#a"}},"UpdateExpression":"SET #steps = :steps","ExpressionAttributeValues":{":step":{"S":"\"COMPLETED\""}}}`, rehearsal.SaveStep},
		{"UpdateItem", `{"Key":{"id":{"S":"lambdaidem#a"}},"UpdateExpression":"SET #lease_end = :lease_end REMOVE #expiration"}`, rehearsal.Hold},
		{"GetItem", `{"Key":{"id":{"S":"lambdaidem#a"}}}`, rehearsal.Read},
		{"PutItem", `{"Item":{"id":{"S":"lambdaidem#a#1#sum"},"part":{"M":{}}}}`, rehearsal.WritePart},
		{"UpdateItem", `{"Key":{"id":{"S":"order-1"}},"ExpressionAttributeValues":{":status":{"S":"COMPLETED"}}}`, rehearsal.Other}, // the handler's own table
		{"PutItem", `no JSON`, rehearsal.Other},
	} {
		got := rehearsal.AccessOf(&proxy.Request{Operation: test.operation, Body: []byte(test.body)})
		if whole := strings.Contains(test.body, `"Item":{"id":{"S":"lambdaidem#a`); got.Whole != whole {
			t.Errorf("%s %s: whole is %t", test.operation, test.body, got.Whole)
		}
		if got.Kind != test.want || got.Kind != rehearsal.Other && got.Record != "lambdaidem#a" {
			t.Errorf("%s %s: %q of %q; want %q", test.operation, test.body, got.Kind, got.Record, test.want)
		}
	}
}

// Guards with Options.IDPrefix have records of their own. The id of a part begins with that of its
// record.
func TestAccess_KnowsTheRecordByItsID(t *testing.T) {
	for id, want := range map[string]rehearsal.Access{
		"lambdaidem#hash":              {Kind: rehearsal.Lock, Record: "lambdaidem#hash"},
		"lambdaidem#hash#1#sum":        {Kind: rehearsal.WritePart, Record: "lambdaidem#hash"},
		"lambdaidem#tenant#hash":       {Kind: rehearsal.Lock, Record: "lambdaidem#tenant#hash"},
		"lambdaidem#tenant#hash#1#sum": {Kind: rehearsal.WritePart, Record: "lambdaidem#tenant#hash"},
	} {
		body := `{"Item":{"id":{"S":"` + id + `"},"status":{"S":"INPROGRESS"}},"ExpressionAttributeNames":{"#status":"status"}}`
		got := rehearsal.AccessOf(&proxy.Request{Operation: "PutItem", Body: []byte(body)})
		if got.Kind != want.Kind || got.Record != want.Record {
			t.Errorf("%s is %q of %q; want %q of %q", id, got.Kind, got.Record, want.Kind, want.Record)
		}
	}
}

// A check of a condition has no effect.
func TestAccess_CountsTheWritesOfATransaction(t *testing.T) {
	const body = `{"TransactItems":[{"Put":{"TableName":"orders","Item":{"id":{"S":"1"}}}},{"ConditionCheck":{"TableName":"accounts","Key":{"id":{"S":"bob"}}}},` +
		`{"Update":{"TableName":"records","Key":{"id":{"S":"lambdaidem#a"}},"ExpressionAttributeValues":{":status":{"S":"COMPLETED"}}}},{"Delete":{"TableName":"orders","Key":{"id":{"S":"0"}}}}]}`
	got := rehearsal.AccessOf(&proxy.Request{Operation: "TransactWriteItems", Body: []byte(body)})
	if got.Writes != 2 || got.Checks != 1 {
		t.Errorf("%d writes and %d checks; want 2 and 1", got.Writes, got.Checks)
	}
}
