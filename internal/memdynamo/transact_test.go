package memdynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// transactAnswer returns the reply to a TransactWriteItems request in one line: "ok", the error
// and its message, or the reasons of a cancellation.
func transactAnswer(status int, body []byte) string {
	if status == http.StatusOK {
		return "ok"
	}
	var e struct {
		Type                string `json:"__type"`
		Message             string // matches both Message and message
		CancellationReasons []struct {
			Code, Message string
			Item          memdynamo.Item
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Sprintf("%d, unreadable: %s", status, body)
	}
	_, typ, _ := strings.Cut(e.Type, "#")
	if typ != memdynamo.TransactionCanceled {
		return fmt.Sprintf("%d %s: %s", status, strings.TrimSuffix(typ, "Exception"), e.Message)
	}
	var codes, reasons []string
	for _, r := range e.CancellationReasons {
		codes = append(codes, r.Code)
		text := r.Code
		if r.Message != "" {
			text += ": " + r.Message
		}
		if r.Item != nil {
			text += " " + r.Item.String()
		}
		reasons = append(reasons, text)
	}
	if want := "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"; e.Message != want {
		return "the message and the reasons do not agree: " + string(body)
	}
	return fmt.Sprintf("%d canceled: %s", status, strings.Join(reasons, " | "))
}

// repeated returns n copies of text, joined with commas, with their number in place of %d.
func repeated(n int, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

var (
	itemTooBig = `"x":{"S":"` + strings.Repeat("x", 400<<10) + `"}`
	itemBig    = `"x":{"S":"` + strings.Repeat("x", 381_293) + `"}` // eleven such items with their keys have less than 4 MB
	longKey    = `{"id":{"S":"` + strings.Repeat("k", 2049) + `"}}`
)

const (
	conditionMessage = "ConditionalCheckFailed: The conditional request failed"
	emptyKey         = "400 Validation: One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"
	twiceOneItem     = "Transaction request cannot include multiple operations on one item"
	twiceOne         = "400 Validation: " + twiceOneItem
	noTable          = "400 ResourceNotFound: Requested resource not found"
)

// transactCase is a list of actions, or a whole request, on a table with the items
// {"id":"a","n":1,"s":"x"} and {"id":"b","n":2}. want is the reply of AWS. local is the reply of
// DynamoDB Local 3.1.0, if it differs.
type transactCase struct{ actions, want, local string }

var transactCases = []transactCase{
	// Requests that are invalid as a whole.
	{`{}`, "400 Validation: 1 validation error detected: Value null at 'transactItems' failed to satisfy constraint: Member must not be null",
		"400 Validation: Value null at 'transactItems' failed to satisfy constraint: Member must not be null"},
	{`[]`, "400 Validation: 1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1",
		"400 Validation: Value [] at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1"},
	{`[{}]`, "400 Validation: Invalid Request: TransactWriteRequest should contain Delete or Put or Update request", ""},
	{`[null]`, "400 Validation: Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
		"500 InternalFailure: The request processing has failed because of an unknown error, exception or failure."},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}},"Delete":{"TableName":"records","Key":{"id":{"S":"d"}}}}]`,
		"400 Validation: TransactItems can only contain one of Check, Put, Update or Delete", ""},
	{`[{},{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}},"Delete":{"TableName":"records","Key":{"id":{"S":"d"}}}}]`,
		"400 Validation: Invalid Request: TransactWriteRequest should contain Delete or Put or Update request", ""},
	{`[` + repeated(100, `{"Put":{"TableName":"records","Item":{"id":{"S":"c%d"}}}}`) + `]`, "ok", ""},
	{`[` + repeated(101, `{"Put":{"TableName":"records","Item":{"id":{"S":"c%d"}}}}`) + `]`,
		"400 Validation: 1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100",
		"400 Validation: Member must have length less than or equal to 100"},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"a"}}}},{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}}}}]`, twiceOne, ""},
	{`[{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_exists(id)"}},{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}}}}]`, twiceOne, ""},
	{`[` + repeated(11, `{"Put":{"TableName":"records","Item":{"id":{"S":"big%d"},`+itemBig+`}}}`) + `]`, "ok", ""},
	{`[` + repeated(11, `{"Put":{"TableName":"records","Item":{"id":{"S":"bigger%d"},`+itemBig+`}}}`) + `]`,
		"400 Validation: Transaction payload size cannot exceed 4MB. Payload Size: 4194334", ""},
	{`[` + repeated(11, `{"Update":{"TableName":"records","Key":{"id":{"S":"big%d"}},"UpdateExpression":"SET x = :x","ExpressionAttributeValues":{":`+itemBig[1:]+`}}}`) + `]`,
		"400 Validation: Transaction payload size cannot exceed 4MB. Payload Size: 4194400", ""},
	{`{"TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}}}}],"ClientRequestToken":""}`,
		"400 Validation: 1 validation error detected: Value '' at 'clientRequestToken' failed to satisfy constraint: Member must have length greater than or equal to 1", "ok"},
	{`{"TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}}}}],"ClientRequestToken":"` + strings.Repeat("é", 36) + `"}`, "ok", ""},
	{`{"TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}}}}],"ReturnConsumedCapacity":"MUCH","ClientRequestToken":"` + strings.Repeat("t", 37) + `"}`,
		"400 Validation: 2 validation errors detected: Value '" + strings.Repeat("t", 37) + "' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36; " +
			"Value 'MUCH' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
		"400 Validation: Value " + strings.Repeat("t", 37) + " at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36"},

	// Actions that lack a member.
	{`[{"Put":{"Item":{"id":{"S":"c"}}}},{"ConditionCheck":{"TableName":"records"}}]`,
		"400 Validation: 3 validation errors detected: Value null at 'transactItems.1.member.put.tableName' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'transactItems.2.member.conditionCheck.key' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'transactItems.2.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null",
		"400 Validation: Value null at 'transactItems.1.member.put.tableName' failed to satisfy constraint: Member must not be null"},
	{`[{"Put":{"TableName":"records"}}]`, "400 Validation: 1 validation error detected: Value null at 'transactItems.1.member.put.item' failed to satisfy constraint: Member must not be null",
		"400 Validation: Value null at 'transactItems.1.member.put.item' failed to satisfy constraint: Member must not be null"},
	{`[{"Delete":{"TableName":"records"}}]`, "400 Validation: 1 validation error detected: Value null at 'transactItems.1.member.delete.key' failed to satisfy constraint: Member must not be null",
		"400 Validation: Value null at 'transactItems.1.member.delete.key' failed to satisfy constraint: Member must not be null"},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}}}}]`, "400 Validation: 1 validation error detected: Value null at 'transactItems.1.member.update.updateExpression' failed to satisfy constraint: Member must not be null", "ok"},
	{`[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}},"ReturnValuesOnConditionCheckFailure":"ALL_NEW"}}]`,
		"400 Validation: 1 validation error detected: Value 'ALL_NEW' at 'transactItems.1.member.delete.returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]", "ok"},

	// Errors that the request alone shows fail the request, beginning with the first action,
	// before any table is looked up.
	{`[{"Delete":{"TableName":"nowhere","Key":{"id":{"S":"a"}}}},{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET x = "}}]`,
		`400 Validation: Invalid UpdateExpression: Syntax error; token: "<EOF>", near: "= "`, ""},
	{`[{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_exists(n)","ExpressionAttributeNames":{"#n":"n"}}},{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"n ="}}]`,
		"400 Validation: Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}", ""},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"a"}},"ExpressionAttributeValues":{":x":{"N":"1"}}}}]`,
		"400 Validation: ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null", ""},
	{`[{"Put":{"TableName":"nowhere","Item":{"id":{"S":"c"},` + itemTooBig + `}}}]`, "400 Validation: Item size has exceeded the maximum allowed size", ""},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"a"},"l":{"SS":[]}}}}]`, "400 Validation: One or more parameter values were invalid: An string set  may not be empty", ""},

	// Tables and keys.
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}}},{"Delete":{"TableName":"nowhere","Key":{"id":{"S":"c"}}}}]`, noTable,
		"400 ResourceNotFound: Cannot do operations on a non-existent table"},
	{`[{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)"}},{"Delete":{"TableName":"nowhere","Key":{"id":{"S":"c"}}}}]`, noTable,
		"400 ResourceNotFound: Cannot do operations on a non-existent table"},
	{`[{"Delete":{"TableName":"no","Key":{"id":{"S":"c"}}}}]`,
		"400 Validation: Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'", ""},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":""}}}}]`, emptyKey, ""},
	{`[{"Delete":{"TableName":"records","Key":{"id":{"N":"1"}}}},{"Delete":{"TableName":"records","Key":{"id":{"S":""}}}}]`, emptyKey, ""},
	{`[{"Put":{"TableName":"records","Item":{"id":{"N":"1"}}}}]`,
		"400 canceled: ValidationError: One or more parameter values were invalid: Type mismatch for key id expected: S actual: N",
		"400 canceled: ValidationError: One or more parameter values were invalid: Type mismatch for key"},
	{`[{"Put":{"TableName":"records","Item":{"x":{"S":"c"}}}}]`,
		"400 canceled: ValidationError: One or more parameter values were invalid: Missing the key id in the item",
		"400 Validation: One of the required keys was not given a value"},
	{`[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"},"x":{"S":"b"}}}}]`,
		"400 canceled: ValidationError: The provided key element does not match the schema",
		"400 Validation: The number of conditions on the keys is invalid"},
	{`[{"Delete":{"TableName":"records","Key":` + longKey + `}}]`,
		"400 canceled: ValidationError: One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes",
		"400 canceled: ValidationError: Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes"},
	// The first action whose key does not match is the only reason. It is found before conditions
	// are evaluated, and before two actions on one item are detected.
	{`[{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)"}},{"Delete":{"TableName":"records","Key":{"id":{"N":"1"}}}},{"Delete":{"TableName":"records","Key":{"id":{"N":"2"}}}}]`,
		"400 canceled: None | ValidationError: The provided key element does not match the schema | None",
		"400 canceled: " + conditionMessage + " | ValidationError: One or more parameter values were invalid: Type mismatch for key | ValidationError: One or more parameter values were invalid: Type mismatch for key"},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}}},{"Delete":{"TableName":"records","Key":{"id":{"S":"c"}}}},{"Delete":{"TableName":"records","Key":{"id":{"N":"1"}}}}]`,
		"400 canceled: None | None | ValidationError: The provided key element does not match the schema", twiceOne},

	// Errors that depend on the items cancel the transaction, and all of them are reported.
	{`[{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}},` +
		`{"Put":{"TableName":"records","Item":{"id":{"S":"z"}}}},` +
		`{"Delete":{"TableName":"records","Key":{"id":{"S":"y"}},"ConditionExpression":"attribute_exists(id)","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}},` +
		`{"Update":{"TableName":"records","Key":{"id":{"S":"b"}},"UpdateExpression":"SET n = n","ConditionExpression":"n = s"}}]`,
		"400 canceled: " + conditionMessage + ` {"id":{"S":"a"},"n":{"N":"1"},"s":{"S":"x"}} | None | ` + conditionMessage + " | " + conditionMessage, ""},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET n = zz"}},{"Put":{"TableName":"records","Item":{"id":{"S":"b"}},"ConditionExpression":"attribute_not_exists(id)"}},{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}}}]`,
		"400 canceled: ValidationError: The provided expression refers to an attribute that does not exist in the item | " + conditionMessage + " | None",
		"400 Validation: The provided expression refers to an attribute that does not exist in the item"},
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}}},{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET n = n + s"}}]`,
		"400 canceled: None | ValidationError: An operand in the update expression has an incorrect data type",
		"400 Validation: An operand in the update expression has an incorrect data type"},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET q.x = n"}}]`,
		"400 canceled: ValidationError: The document path provided in the update expression is invalid for update",
		"400 Validation: The document path provided in the update expression is invalid for update"},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET q.x = n","ConditionExpression":"attribute_not_exists(id)"}}]`, "400 canceled: " + conditionMessage, ""},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET x = :x","ExpressionAttributeValues":{":` + itemTooBig[1:] + `}}}]`,
		"400 canceled: ValidationError: Item size to update has exceeded the maximum allowed size",
		"400 Validation: Item size to update has exceeded the maximum allowed size"},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET id = n"}}]`,
		"400 canceled: ValidationError: One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key", ""},
	{`[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"SET id = n","ConditionExpression":"attribute_not_exists(id)"}}]`,
		"400 canceled: ValidationError: One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key",
		"400 canceled: " + conditionMessage},
	{`[{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"id.x = n"}}]`,
		"400 canceled: ValidationError: Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: id",
		"400 canceled: " + conditionMessage},

	// Transactions that are applied.
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"c"}},"ConditionExpression":"attribute_not_exists(id)"}},` +
		`{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"ADD n :x","ConditionExpression":"n = :x","ExpressionAttributeValues":{":x":{"N":"1"}}}},` +
		`{"Delete":{"TableName":"records","Key":{"id":{"S":"b"}},"ConditionExpression":"attribute_exists(id)"}},` +
		`{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"d"}},"ConditionExpression":"attribute_not_exists(id)"}}]`, "ok", ""},
	{`[{"Delete":{"TableName":"records","Key":{"id":{"S":"absent"}}}},{"Update":{"TableName":"records","Key":{"id":{"S":"fresh"}},"UpdateExpression":"SET n = :x","ExpressionAttributeValues":{":x":{"N":"1"}}}}]`, "ok", ""},
	// Conditions are evaluated on the items before the transaction: a check does not see the item
	// c.
	{`[{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}}},{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"n = :x","ExpressionAttributeValues":{":x":{"N":"1"}}}}]`, "ok", ""},
}

func (c transactCase) body() string {
	if strings.HasPrefix(c.actions, "{") {
		return c.actions
	}
	return `{"TransactItems":` + c.actions + `}`
}

func prepared(t *testing.T) *memdynamo.DB {
	t.Helper()
	db := newDB(t)
	put(t, db, `{"id":{"S":"a"},"n":{"N":"1"},"s":{"S":"x"}}`)
	put(t, db, `{"id":{"S":"b"},"n":{"N":"2"}}`)
	return db
}

func TestTransactWriteItemsAnswers(t *testing.T) {
	for _, c := range transactCases {
		db := prepared(t)
		before := fmt.Sprint(db.Items("records"))
		status, _, out := db.Serve("TransactWriteItems", []byte(c.body()))
		if got := transactAnswer(status, out); got != c.want {
			t.Errorf("%.400s\n got %s\nwant %s", c.actions, got, c.want)
		}
		if after := fmt.Sprint(db.Items("records")); c.want != "ok" && after != before {
			t.Errorf("%.400s: a refused transaction changed\n%s\nto\n%s", c.actions, before, after)
		}
	}
}

func TestTransactWriteItemsIsStrict(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"TransactItems":[],"ReturnItemCollectionMetrics":"SIZE"}`, `unknown field "ReturnItemCollectionMetrics"`},
		{`{"TransactItems":[{"Put":{"TableName":"records","Item":{},"ReturnValues":"ALL_OLD"}}]}`, `unknown field "ReturnValues"`},
		{`{"TransactItems":[{"Put":{"TableName":"records","Key":{}}}]}`, `unknown field "Key"`},
		{`{"TransactItems":[{"Delete":{"TableName":"records","Item":{}}}]}`, `unknown field "Item"`},
		{`{"TransactItems":[{"ConditionCheck":{"TableName":"records","UpdateExpression":""}}]}`, `unknown field "UpdateExpression"`},
		{`{"TransactItems":[{"Get":{}}]}`, `unknown field "Get"`},
	} {
		typ, message, _ := refusal(newDB(t), "TransactWriteItems", c.body)
		if typ != memdynamo.Serialization || !strings.Contains(message, c.want) {
			t.Errorf("%s\n got %s: %s\nwant %s", c.body, typ, message, c.want)
		}
	}
}

const allKinds = `{"TransactItems":[` +
	`{"Put":{"TableName":"records","Item":{"id":{"S":"c"}}}},` +
	`{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"d"}},"ConditionExpression":"attribute_not_exists(id)"}},` +
	`{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"checked"}},"ConditionExpression":"attribute_exists(id)"}},` +
	`{"Delete":{"TableName":"records","Key":{"id":{"S":"absent"}}}},` +
	`{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"ADD n :x","ExpressionAttributeValues":{":x":{"N":"1"}}}},` +
	`{"Update":{"TableName":"records","Key":{"id":{"S":"e"}},"UpdateExpression":"REMOVE n"}},` +
	`{"Delete":{"TableName":"records","Key":{"id":{"S":"b"}}}}]}`

func TestOnWriteTellsWhichWritesAreOfOneTransaction(t *testing.T) {
	db := prepared(t)
	put(t, db, `{"id":{"S":"checked"}}`)
	var seen []string
	db.OnWrite(func(w memdynamo.Write) {
		seen = append(seen, fmt.Sprintf("%d %s %s %v: %v > %v", w.Transaction, w.Table, w.Op, w.Key["id"].Text, w.Before, w.After))
	})
	mustServe(t, db, "TransactWriteItems", allKinds)
	put(t, db, `{"id":{"S":"b"}}`)
	refusal(db, "TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"records","Item":{"id":{"S":"z"}}}},{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"z2"}},"ConditionExpression":"attribute_exists(id)"}}]}`)
	mustServe(t, db, "TransactWriteItems", `{"TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"c"}}}}]}`)
	want := []string{
		`1 records TransactWriteItems c: null > {"id":{"S":"c"}}`,
		`1 records TransactWriteItems a: {"id":{"S":"a"},"n":{"N":"1"},"s":{"S":"x"}} > {"id":{"S":"a"},"n":{"N":"2"},"s":{"S":"x"}}`,
		`1 records TransactWriteItems b: {"id":{"S":"b"},"n":{"N":"2"}} > null`,
		`0 records PutItem b: null > {"id":{"S":"b"}}`,
		`2 records TransactWriteItems c: {"id":{"S":"c"}} > null`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if got := fmt.Sprint(db.Items("records")); got != `[{"id":{"S":"a"},"n":{"N":"2"},"s":{"S":"x"}} {"id":{"S":"b"}} {"id":{"S":"checked"}}]` {
		t.Errorf("afterwards: %s", got)
	}
}

// TestTransactionCapacity checks AWS's rule: each item consumes twice the units of a single
// request, is rounded separately, and is counted for its table. A condition check counts like a
// write. A repetition consumes twice the units of reading the items.
func TestTransactionCapacity(t *testing.T) {
	db := prepared(t)
	mustServe(t, db, "CreateTable", `{"TableName":"others","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	sized := func(id string, size int) string { // id, a letter and x are four bytes
		return `{"id":{"S":"` + id + `"},"x":{"S":"` + strings.Repeat("x", size-4) + `"}}`
	}
	mustServe(t, db, "PutItem", `{"TableName":"records","Item":`+sized("c", 9000)+`}`)
	mustServe(t, db, "PutItem", `{"TableName":"records","Item":`+sized("d", 1500)+`}`)
	body := func(choice string) string {
		return `{"ClientRequestToken":"capacity-` + choice + `","ReturnConsumedCapacity":"` + choice + `","TransactItems":[` +
			`{"Put":{"TableName":"others","Item":` + sized("o", 1025) + `}},` + // 2
			`{"Put":{"TableName":"records","Item":` + sized("e", 1024) + `}},` + // 1
			`{"Delete":{"TableName":"records","Key":{"id":{"S":"c"}}}},` + // 9
			`{"ConditionCheck":{"TableName":"records","Key":{"id":{"S":"d"}},"ConditionExpression":"attribute_exists(id)"}},` + // 2
			`{"Delete":{"TableName":"records","Key":{"id":{"S":"absent"}}}}]}` // 1
	}
	const written = `{"ConsumedCapacity":[{"TableName":"others","CapacityUnits":4,"WriteCapacityUnits":4},{"TableName":"records","CapacityUnits":26,"WriteCapacityUnits":26}]}`
	if got := mustServe(t, db, "TransactWriteItems", body("TOTAL")); got != written {
		t.Errorf("first\n got %s\nwant %s", got, written)
	}
	// Units by 4 KB: o 1; e 1, c 3, d 1, absent 1.
	const read = `{"ConsumedCapacity":[{"TableName":"others","CapacityUnits":2,"ReadCapacityUnits":2},{"TableName":"records","CapacityUnits":12,"ReadCapacityUnits":12}]}`
	if got := mustServe(t, db, "TransactWriteItems", body("TOTAL")); got != read {
		t.Errorf("repeated\n got %s\nwant %s", got, read)
	}
	const indexes = `{"ConsumedCapacity":[{"TableName":"others","CapacityUnits":4,"WriteCapacityUnits":4,"Table":{"CapacityUnits":4,"WriteCapacityUnits":4}},{"TableName":"records","CapacityUnits":10,"WriteCapacityUnits":10,"Table":{"CapacityUnits":10,"WriteCapacityUnits":10}}]}`
	if got := mustServe(t, db, "TransactWriteItems", body("INDEXES")); got != indexes { // the item c no longer exists, so it counts 1
		t.Errorf("INDEXES\n got %s\nwant %s", got, indexes)
	}
	for _, choice := range []string{"NONE", ""} {
		if got := mustServe(t, db, "TransactWriteItems", strings.Replace(body(choice), `"ReturnConsumedCapacity":"",`, "", 1)); got != `{}` {
			t.Errorf("%q: got %s", choice, got)
		}
	}
}

func TestClientRequestToken(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	now := start
	db := memdynamo.New(func() time.Time { return now })
	mustServe(t, db, "CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	writes := 0
	db.OnWrite(func(memdynamo.Write) { writes++ })
	add := func(token, rest string) string {
		status, _, out := db.Serve("TransactWriteItems", []byte(`{"ClientRequestToken":"`+token+`","TransactItems":[{"Update":{"TableName":"records","Key":{"id":{"S":"a"}},"UpdateExpression":"ADD n :x","ExpressionAttributeValues":{":x":{"N":"1"}}`+rest+`}}]}`))
		return transactAnswer(status, out)
	}
	const mismatch = "400 IdempotentParameterMismatch: Specified idempotent token was used with different request parameters within the idempotency window"
	const onlyOnce = `,"ConditionExpression":"attribute_not_exists(id)"`
	for _, step := range []struct {
		at           time.Duration
		token, rest  string
		want         string
		appliedSoFar int
	}{
		{0, "one", onlyOnce, "ok", 1},
		{0, "one", onlyOnce, "ok", 1}, // although the condition would fail now
		{9 * time.Minute, "one", onlyOnce, "ok", 1},
		{9 * time.Minute, "one", "", mismatch, 1},
		{9 * time.Minute, "one", onlyOnce + " ", mismatch, 1}, // other bytes under the same token
		{9 * time.Minute, "two", "", "ok", 2},
		{10*time.Minute - time.Nanosecond, "one", onlyOnce, "ok", 2}, // the time counts from the first request, not from a repetition
		{10 * time.Minute, "one", onlyOnce, "400 canceled: " + conditionMessage, 2},
		{10 * time.Minute, "two", "", "ok", 2},
		{10 * time.Minute, "one", "", "ok", 3}, // a canceled request left no token
		{19 * time.Minute, "two", "", "ok", 4},
		{20*time.Minute - time.Nanosecond, "one", "", "ok", 4},
		{20 * time.Minute, "one", "", "ok", 5},
	} {
		now = start.Add(step.at)
		if got := add(step.token, step.rest); got != step.want {
			t.Errorf("%+v\n got %s", step, got)
		}
		if writes != step.appliedSoFar {
			t.Errorf("%+v\n %d writes were applied", step, writes)
		}
	}
}

// TestCanceledTokenIsJudgedAgain checks that a canceled transaction is evaluated again if its
// token is used again, and may then succeed.
func TestCanceledTokenIsJudgedAgain(t *testing.T) {
	db := newDB(t)
	body := []byte(`{"ClientRequestToken":"t","TransactItems":[{"Delete":{"TableName":"records","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_exists(id)"}}]}`)
	for i, want := range []string{"400 canceled: " + conditionMessage, "400 canceled: " + conditionMessage, "ok", "ok"} {
		if i == 2 {
			put(t, db, `{"id":{"S":"a"}}`)
		}
		status, _, out := db.Serve("TransactWriteItems", body)
		if got := transactAnswer(status, out); got != want {
			t.Errorf("call %d: got %s, want %s", i, got, want)
		}
	}
}

// answering is an HTTP client that gives every request the same reply.
type answering func() (int, http.Header, []byte)

func (a answering) Do(req *http.Request) (*http.Response, error) {
	status, header, body := a()
	return memdynamo.Response(req, status, header, body), nil
}

func transact(ctx context.Context, client aws.HTTPClient) error {
	_, err := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", HTTPClient: client, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("fake", "fake", ""),
	}).TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("records"), Key: attributes{"id": s("a")}, ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
		{Put: &types.Put{TableName: aws.String("records"), Item: attributes{"id": s("c")}}},
	}})
	return err
}

func TestSDKReadsTransactionErrors(t *testing.T) {
	var canceled *types.TransactionCanceledException
	err := transact(t.Context(), &memdynamo.Client{DB: prepared(t)})
	if !errors.As(err, &canceled) {
		t.Fatalf("served: %v", err)
	}
	item := attributes{"id": s("a"), "n": n("1"), "s": s("x")}
	if r := canceled.CancellationReasons; len(r) != 2 || *r[0].Code != memdynamo.ReasonConditionalCheckFailed || !reflect.DeepEqual(r[0].Item, item) || *r[1].Code != memdynamo.ReasonNone || r[1].Message != nil {
		t.Errorf("served: %+v", r)
	}

	codes := []string{
		memdynamo.ReasonNone, memdynamo.ReasonConditionalCheckFailed, memdynamo.ReasonItemCollectionSizeLimitExceeded, memdynamo.ReasonProvisionedThroughputExceeded,
		memdynamo.ReasonThrottling, memdynamo.ReasonTransactionConflict, memdynamo.ReasonValidation,
	}
	err = transact(t.Context(), answering(func() (int, http.Header, []byte) { return memdynamo.Canceled(codes...) }))
	if !errors.As(err, &canceled) {
		t.Fatalf("on purpose: %v", err)
	}
	const message = "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, ItemCollectionSizeLimitExceeded, ProvisionedThroughputExceeded, ThrottlingError, TransactionConflict, ValidationError]"
	if canceled.ErrorMessage() != message {
		t.Errorf("on purpose: %s", canceled.ErrorMessage())
	}
	if len(canceled.CancellationReasons) != len(codes) {
		t.Fatalf("on purpose: %d reasons", len(canceled.CancellationReasons))
	}
	for i, r := range canceled.CancellationReasons {
		if *r.Code != codes[i] || (r.Message == nil) != (i == 0) || r.Item != nil {
			t.Errorf("reason %d: %+v", i, r)
		}
	}

	if m := *canceled.CancellationReasons[5].Message; m != "Transaction is ongoing for the item" {
		t.Errorf("on purpose: a conflict says %q", m)
	}

	var inProgress *types.TransactionInProgressException
	var mismatch *types.IdempotentParameterMismatchException
	var conflict *types.TransactionConflictException
	for _, c := range []struct {
		typ, body string
		target    any
	}{
		{memdynamo.TransactionInProgress, `"Message":"on purpose"}`, &inProgress},
		{memdynamo.IdempotentParameterMismatch, `"Message":"on purpose"}`, &mismatch},
		{memdynamo.TransactionConflict, `"message":"on purpose"}`, &conflict},
	} {
		status, header, body := memdynamo.Error(c.typ, "on purpose")
		if want := `{"__type":"com.amazonaws.dynamodb.v20120810#` + c.typ + `",` + c.body; status != http.StatusBadRequest || string(body) != want {
			t.Errorf("%s: %d %s", c.typ, status, body)
		}
		err := transact(t.Context(), answering(func() (int, http.Header, []byte) { return status, header, body }))
		if !errors.As(err, c.target) || !strings.Contains(err.Error(), c.typ+": on purpose") {
			t.Errorf("%s: %v", c.typ, err)
		}
	}
}

// losing is an HTTP client that serves every request but loses the first replies.
type losing struct {
	db   *memdynamo.DB
	left *int
}

func (l losing) Do(req *http.Request) (*http.Response, error) {
	op, body, err := memdynamo.Request(req)
	if err != nil {
		return nil, err
	}
	status, header, out := l.db.Serve(op, body)
	if *l.left > 0 {
		*l.left--
		status, header, out = memdynamo.Error(memdynamo.InternalServerError, "lost")
	}
	return memdynamo.Response(req, status, header, out), nil
}

// TestSDKRetryIsOneTransaction checks that the SDK's own retries repeat both the token, which the
// SDK has generated, and the bytes, although maps have no order.
func TestSDKRetryIsOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, left, writes := newDB(t), 2, 0
		db.OnWrite(func(memdynamo.Write) { writes++ })
		client := dynamodb.New(dynamodb.Options{
			Region: "us-east-1", HTTPClient: losing{db, &left},
			Credentials: credentials.NewStaticCredentialsProvider("fake", "fake", ""),
		})
		item := attributes{"id": s("a")}
		for i := range 20 {
			item[fmt.Sprintf("attribute%d", i)] = s("x")
		}
		_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("records"), Item: item, ConditionExpression: aws.String("attribute_not_exists(id)")}},
		}})
		if err != nil || writes != 1 || left != 0 {
			t.Errorf("%v, after %d writes; %d answers left to lose", err, writes, left)
		}
	})
}

func TestCanceledRefusesWhatDynamoDBNeverSays(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unknown code was let through")
		}
	}()
	memdynamo.Canceled("NONE")
}
