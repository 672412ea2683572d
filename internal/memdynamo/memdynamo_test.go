package memdynamo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

const keyA = `"TableName":"records","Key":{"id":{"S":"a"}}`

func put(t *testing.T, db *memdynamo.DB, item string) {
	t.Helper()
	mustServe(t, db, "PutItem", `{"TableName":"records","Item":`+item+`}`)
}

func TestRefusals(t *testing.T) {
	db := newDB(t)
	put(t, db, `{"id":{"S":"a"},"n":{"N":"1"}}`)
	long := strings.Repeat("x", 400<<10)
	for _, c := range []struct{ op, body, typ, message string }{
		{"PutItem", `{"TableName":"nowhere","Item":{"id":{"S":"a"}}}`, memdynamo.ResourceNotFound, "Requested resource not found"},
		{"DescribeTable", `{"TableName":"nowhere"}`, memdynamo.ResourceNotFound, "Requested resource not found: Table: nowhere not found"},
		{"PutItem", `{"TableName":"no","Item":{"id":{"S":"a"}}}`, memdynamo.Validation, "Invalid table/index name.  Table/index names must be between 3 and 255 characters long, and may contain only the characters a-z, A-Z, 0-9, '_', '-', and '.'"},
		{"PutItem", `{"TableName":"records","Item":{"x":{"S":"a"}}}`, memdynamo.Validation, "One or more parameter values were invalid: Missing the key id in the item"},
		{"PutItem", `{"TableName":"records","Item":{"id":{"N":"1"}}}`, memdynamo.Validation, "One or more parameter values were invalid: Type mismatch for key id expected: S actual: N"},
		{"PutItem", `{"TableName":"records","Item":{"id":{"S":""}}}`, memdynamo.Validation, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: id"},
		{"PutItem", `{"TableName":"records","Item":{"id":{"S":"a"},"x":{"S":"` + long + `"}}}`, memdynamo.Validation, "Item size has exceeded the maximum allowed size"},
		{"UpdateItem", `{` + keyA + `,"UpdateExpression":"SET x = :x","ExpressionAttributeValues":{":x":{"S":"` + long + `"}}}`, memdynamo.Validation, "Item size to update has exceeded the maximum allowed size"},
		{"GetItem", `{"TableName":"records","Key":{"x":{"S":"a"}}}`, memdynamo.Validation, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"records","Key":{"id":{"S":"a"},"x":{"S":"a"}}}`, memdynamo.Validation, "The provided key element does not match the schema"},
		{"GetItem", `{` + keyA + `,"ProjectionExpression":"n, status"}`, memdynamo.Validation, "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: status"},
		{"GetItem", `{` + keyA + `,"ExpressionAttributeNames":{"#n":"n"}}`, memdynamo.Validation, "ExpressionAttributeNames can only be specified when using expressions"},
		{"UpdateItem", `{` + keyA + `,"ExpressionAttributeValues":{":x":{"N":"1"}}}`, memdynamo.Validation, "ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null"},
		{"DeleteItem", `{` + keyA + `,"ReturnValues":"ALL_NEW"}`, memdynamo.Validation, "Return values set to invalid value"},
		{"DeleteItem", `{` + keyA + `,"ConditionExpression":"attribute_exists(n)","ExpressionAttributeNames":{"#n":"n"}}`, memdynamo.Validation, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}"},
		{"DeleteItem", `{` + keyA + `,"Expected":{}}`, memdynamo.Serialization, `memdynamo can't read the request: json: unknown field "Expected"`},
		{"DeleteItem", `{` + keyA, memdynamo.Serialization, "memdynamo can't read the request: unexpected EOF"},
		{"PutItem", `{"TableName":"records","Item":{"id":{"S":5}}}`, memdynamo.Serialization, "memdynamo can't read the request: malformed attribute value"},
		{"CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`, memdynamo.ResourceInUse, "Table already exists: records"},
		{"BatchGetItem", `{}`, memdynamo.UnknownOperation, `memdynamo does not speak the operation "BatchGetItem"`},
		{"DeleteItem", `{` + keyA + `,"ConditionExpression":"n = n2"}`, memdynamo.ConditionalCheckFailed, "The conditional request failed"},
	} {
		typ, message, status := refusal(db, c.op, c.body)
		if typ != c.typ || message != c.message || status != http.StatusBadRequest {
			t.Errorf("%s %.200s\n got %d %s: %s\nwant 400 %s: %s", c.op, c.body, status, typ, message, c.typ, c.message)
		}
	}
	if got := fmt.Sprint(db.Items("records")); got != `[{"id":{"S":"a"},"n":{"N":"1"}}]` {
		t.Errorf("refused requests changed the table: %s", got)
	}
}

// TestLimits checks limits that DynamoDB Local enforces in the same way.
func TestLimits(t *testing.T) {
	db := newDB(t)
	condition := func(expression string) string {
		_, message, _ := refusal(db, "DeleteItem", `{`+keyA+`,"ConditionExpression":"`+expression+`","ExpressionAttributeValues":{":x":{"N":"1"}}}`)
		return message
	}
	times := func(n int, text, separator string) string {
		return strings.TrimSuffix(strings.Repeat(text+separator, n), separator)
	}
	const fails = "The conditional request failed"
	for _, c := range []struct{ expression, want string }{
		{times(150, "n = :x", " OR "), fails}, // 150 comparisons and 149 ORs
		{times(151, "n = :x", " OR "), "Invalid ConditionExpression: The expression contains too many operators; operator count: 301"},
		{"n IN (" + times(100, ":x", ",") + ")", fails},
		{"n IN (" + times(101, ":x", ",") + ")", "Invalid ConditionExpression: The IN operator is provided with too many operands; number of operands: 101"},
		{times(32, "m", ".") + " = :x", fails},
		{times(33, "m", ".") + " = :x", "Invalid ConditionExpression: The document path has too many nesting levels; nesting levels: 33"},
		{"n = :x" + strings.Repeat(" ", 4090), fails},
		{"n = :x" + strings.Repeat(" ", 4100), "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4106"},
		{"n[2147483647] = :x", fails},
	} {
		if got := condition(c.expression); got != c.want {
			t.Errorf("%.60s: got %q, want %q", c.expression, got, c.want)
		}
	}
	nested := func(lists int) string {
		return `{"TableName":"records","Item":{"id":{"S":"a"},"l":` + strings.Repeat(`{"L":[`, lists) + `{"S":"x"}` + strings.Repeat(`]}`, lists) + `}}`
	}
	mustServe(t, db, "PutItem", nested(31))
	if _, message, _ := refusal(db, "PutItem", nested(32)); message != "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit" {
		t.Errorf("32 lists deep: got %q", message)
	}
}

func TestUpdateTimeToLive(t *testing.T) {
	db := newDB(t)
	for _, step := range []struct{ specification, want string }{
		{`{"Enabled":false,"AttributeName":"expiration"}`, "TimeToLive is already disabled"},
		{`{"Enabled":true,"AttributeName":"expiration"}`, ""},
		{`{"Enabled":true,"AttributeName":"expiration"}`, "TimeToLive is already enabled"},
		{`{"Enabled":true,"AttributeName":"other"}`, "TimeToLive is active on a different AttributeName: current AttributeName is expiration"},
		{`{"Enabled":false,"AttributeName":"expiration"}`, ""},
		{`{"Enabled":true,"AttributeName":"other"}`, ""},
	} {
		_, message, _ := refusal(db, "UpdateTimeToLive", `{"TableName":"records","TimeToLiveSpecification":`+step.specification+`}`)
		if message != step.want {
			t.Errorf("%s: got %q, want %q", step.specification, message, step.want)
		}
	}
}

// TestTableNames checks the lengths and the characters of table names.
func TestTableNames(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	for name, valid := range map[string]bool{
		letters: true, "a.b": true, "...": true, strings.Repeat("x", 255): true,
		"ab": false, strings.Repeat("x", 256): false,
		"abc ": false, " abc": false, "a/b": false, "a:b": false, "a#b": false, "äbc": false, "abc\u0000": false,
	} {
		want := memdynamo.Validation
		if valid {
			want = memdynamo.ResourceNotFound
		}
		text, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		if typ, message, _ := refusal(newDB(t), "PutItem", `{"TableName":`+string(text)+`,"Item":{"id":{"S":"a"}}}`); typ != want {
			t.Errorf("%q: got %s: %s; want %s", name, typ, message, want)
		}
	}
}

// TestReservedWords checks the reserved words that attributes of this project could have as
// names.
func TestReservedWords(t *testing.T) {
	db := newDB(t)
	for _, word := range []string{"status", "data", "token", "name", "ttl", "key", "value", "timestamp", "state", "scope", "Status", "ZONE", "abort"} {
		_, message, _ := refusal(db, "GetItem", `{`+keyA+`,"ProjectionExpression":"`+word+`"}`)
		if want := "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: " + word; message != want {
			t.Errorf("%s: got %q", word, message)
		}
	}
	for _, word := range []string{"attempt", "expiration", "validation", "encoding", "parts", "steps", "outcome", "in_progress_expiration"} {
		mustServe(t, db, "GetItem", `{`+keyA+`,"ProjectionExpression":"`+word+`"}`)
	}
}

func TestConditionFailureReturnsOldItem(t *testing.T) {
	db := newDB(t)
	const failing = `{"TableName":"records","Item":{"id":{"S":"a"}},"ConditionExpression":"n = :x","ExpressionAttributeValues":{":x":{"N":"2"}},"ReturnValuesOnConditionCheckFailure":%q}`
	answer := func(choice string) string {
		_, _, out := db.Serve("PutItem", fmt.Appendf(nil, failing, choice))
		return string(out)
	}
	const failed = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"`
	if got := answer("ALL_OLD"); got != failed+"}" {
		t.Errorf("no item was there: got %s", got)
	}
	put(t, db, `{"id":{"S":"a"},"n":{"N":"1"}}`)
	if got := answer("ALL_OLD"); got != failed+`,"Item":{"id":{"S":"a"},"n":{"N":"1"}}}` {
		t.Errorf("ALL_OLD: got %s", got)
	}
	if got := answer("NONE"); got != failed+"}" {
		t.Errorf("NONE: got %s", got)
	}
}

// TestReturnValuesAsAWS checks results for which DynamoDB Local differs from AWS.
func TestReturnValuesAsAWS(t *testing.T) {
	for _, c := range []struct{ update, choice, want string }{
		{"SET m.b = :x", "UPDATED_OLD", `{"Attributes":{"m":{"M":{"b":{"S":"dog"}}}}}`},
		{"SET m.b = :x", "UPDATED_NEW", `{"Attributes":{"m":{"M":{"b":{"N":"7"}}}}}`},
		{"SET m.c[1] = :x, m.b = :x", "UPDATED_OLD", `{"Attributes":{"m":{"M":{"b":{"S":"dog"},"c":{"L":[{"N":"2"}]}}}}}`},
		{"SET m.fresh = :x", "UPDATED_OLD", `{}`},
		{"SET m.fresh = :x", "UPDATED_NEW", `{"Attributes":{"m":{"M":{"fresh":{"N":"7"}}}}}`},
		{"SET m.c[100] = :x", "UPDATED_NEW", `{}`},
		{"REMOVE m.c[1], m.c[3] ADD q :x", "UPDATED_OLD", `{"Attributes":{"m":{"M":{"c":{"L":[{"N":"2"}]}}}}}`},
		{"REMOVE m.c[1] ADD q :x", "UPDATED_NEW", `{"Attributes":{"m":{"M":{"c":{"L":[{"N":"3"}]}}},"q":{"N":"7"}}}`},
		{"SET m = :x", "NONE", `{}`},
	} {
		db := newDB(t)
		put(t, db, `{"id":{"S":"a"},"m":{"M":{"b":{"S":"dog"},"c":{"L":[{"N":"1"},{"N":"2"},{"N":"3"}]}}}}`)
		got := mustServe(t, db, "UpdateItem", `{`+keyA+`,"UpdateExpression":"`+c.update+`","ReturnValues":"`+c.choice+`","ExpressionAttributeValues":{":x":{"N":"7"}}}`)
		if got != c.want {
			t.Errorf("%s, %s\n got %s\nwant %s", c.update, c.choice, got, c.want)
		}
	}
}

func TestUpdateOfAbsentItem(t *testing.T) {
	for _, c := range []struct{ update, values, want string }{
		{`"UpdateExpression":"SET n = :x"`, `{":x":{"N":"1"}}`, `[{"id":{"S":"a"},"n":{"N":"1"}}]`},
		{`"UpdateExpression":"ADD n :x"`, `{":x":{"N":"1"}}`, `[{"id":{"S":"a"},"n":{"N":"1"}}]`},
		{`"ReturnValues":"NONE"`, "", `[{"id":{"S":"a"}}]`},
		{`"UpdateExpression":"REMOVE n"`, "", `[]`},
		{`"UpdateExpression":"DELETE n :x"`, `{":x":{"SS":["a"]}}`, `[]`},
	} {
		db := newDB(t)
		body := `{` + keyA + `,` + c.update
		if c.values != "" {
			body += `,"ExpressionAttributeValues":` + c.values
		}
		mustServe(t, db, "UpdateItem", body+"}")
		if got := fmt.Sprint(db.Items("records")); got != c.want {
			t.Errorf("%s: got %s, want %s", c.update, got, c.want)
		}
	}
}

// TestCapacity checks AWS's rules: a write consumes units by KB of the larger of the item before
// and after, and a read by 4 KB, or half of that if it need not be consistent.
func TestCapacity(t *testing.T) {
	db := newDB(t)
	sized := func(size int) string { // id, a, x are four bytes
		return `{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", size-4) + `"}}`
	}
	units := func(op, body, want string) {
		t.Helper()
		if got := mustServe(t, db, op, body); !strings.Contains(got, `"ConsumedCapacity":{"TableName":"records","CapacityUnits":`+want+`}`) {
			t.Errorf("%s %.80s: got %.300s, want %s units", op, body, got, want)
		}
	}
	const total = `,"ReturnConsumedCapacity":"TOTAL"}`
	units("GetItem", `{`+keyA+total, "0.5")
	units("PutItem", `{"TableName":"records","Item":`+sized(1024)+total, "1")
	units("PutItem", `{"TableName":"records","Item":`+sized(1025)+total, "2")
	units("PutItem", `{"TableName":"records","Item":`+sized(100)+total, "2")
	units("PutItem", `{"TableName":"records","Item":`+sized(8193)+total, "9")
	units("GetItem", `{`+keyA+`,"ConsistentRead":true`+total, "3")
	units("GetItem", `{`+keyA+total, "1.5")
	units("Scan", `{"TableName":"records"`+total, "1.5")
	units("UpdateItem", `{`+keyA+`,"UpdateExpression":"REMOVE x"`+total, "9")
	units("DeleteItem", `{`+keyA+total, "1")
	units("DeleteItem", `{`+keyA+total, "1")
	if got := mustServe(t, db, "DeleteItem", `{`+keyA+`}`); got != "{}" {
		t.Errorf("capacity was not asked for: got %s", got)
	}
}

func TestItemSize(t *testing.T) {
	for _, c := range []struct {
		value memdynamo.Value
		want  int
	}{
		{memdynamo.String("é"), 2}, {memdynamo.Number(123), 3},
		{memdynamo.Value{Type: memdynamo.TypeBool}, 1}, {memdynamo.Value{Type: memdynamo.TypeNull}, 1},
		{memdynamo.Value{Type: memdynamo.TypeBinary, Text: "\x01\x02"}, 2},
		{memdynamo.Value{Type: memdynamo.TypeList}, 3},
		{memdynamo.Value{Type: memdynamo.TypeList, List: []memdynamo.Value{{Type: memdynamo.TypeNull}, memdynamo.String("a")}}, 7},
		{memdynamo.Value{Type: memdynamo.TypeMap, Map: map[string]memdynamo.Value{"a": memdynamo.String("b"), "c": {Type: memdynamo.TypeList}}}, 11},
		{memdynamo.Value{Type: memdynamo.TypeStringSet, Set: []string{"a", "b"}}, 2},
		{memdynamo.Value{Type: memdynamo.TypeNumberSet, Set: []string{"1", "2"}}, 4},
	} {
		if got := (memdynamo.Item{"name": c.value}).Size(); got != 4+c.want {
			t.Errorf("%v: %d bytes, want %d", c.value, got, 4+c.want)
		}
	}
}

func TestL7_TTLDeletesOnlyWhenToldAndOnlyWhatIsPast(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db := memdynamo.New(func() time.Time { return now })
	mustServe(t, db, "CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	for id, expiration := range map[string]string{
		"past": `{"N":"1799999999"}`, "now": `{"N":"1800000000"}`, "future": `{"N":"1800000001"}`,
		"text": `{"S":"1"}`, "ancient": `{"N":"1"}`,
	} {
		put(t, db, `{"id":{"S":"`+id+`"},"expiration":`+expiration+`}`)
	}
	put(t, db, `{"id":{"S":"none"}}`)
	if got := db.Expired("records"); len(got) != 0 {
		t.Errorf("TTL is off, and may delete %v", got)
	}
	mustServe(t, db, "UpdateTimeToLive", `{"TableName":"records","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expiration"}}`)
	if got := mustServe(t, db, "DescribeTimeToLive", `{"TableName":"records"}`); got != `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expiration"}}` {
		t.Error(got)
	}
	if got := fmt.Sprint(db.Expired("records")); got != `[{"id":{"S":"past"}}]` {
		t.Errorf("at now TTL may delete %s", got)
	}
	now = now.Add(time.Nanosecond)
	if got := fmt.Sprint(db.Expired("records")); got != `[{"id":{"S":"now"}} {"id":{"S":"past"}}]` {
		t.Errorf("an instant later TTL may delete %s", got)
	}
	if n := len(db.Items("records")); n != 6 {
		t.Errorf("%d items are left of 6 before anything was told to go", n)
	}

	var writes []memdynamo.Write
	db.OnWrite(func(w memdynamo.Write) { writes = append(writes, w) })
	if db.DeleteExpired("records", memdynamo.Item{"id": memdynamo.String("future")}) || db.DeleteExpired("records", memdynamo.Item{"id": memdynamo.String("nobody")}) {
		t.Error("TTL deleted what it may not")
	}
	if !db.DeleteExpired("records", memdynamo.Item{"id": memdynamo.String("past")}) || db.DeleteExpired("records", memdynamo.Item{"id": memdynamo.String("past")}) {
		t.Error("TTL did not delete once what it may")
	}
	if len(writes) != 1 || writes[0].Op != "TTL" || writes[0].After != nil || writes[0].Before.String() != `{"expiration":{"N":"1799999999"},"id":{"S":"past"}}` {
		t.Errorf("writes: %+v", writes)
	}
}

func TestOnWriteSeesEachAppliedWrite(t *testing.T) {
	db := newDB(t)
	var seen []string
	db.OnWrite(func(w memdynamo.Write) {
		seen = append(seen, fmt.Sprintf("%s %v: %v > %v", w.Op, w.Key, w.Before, w.After))
	})
	put(t, db, `{"id":{"S":"a"}}`)
	put(t, db, `{"id":{"S":"a"}}`)
	refusal(db, "PutItem", `{"TableName":"records","Item":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)"}`)
	mustServe(t, db, "GetItem", `{`+keyA+`}`)
	mustServe(t, db, "UpdateItem", `{`+keyA+`,"UpdateExpression":"SET n = :x","ExpressionAttributeValues":{":x":{"N":"1"}}}`)
	mustServe(t, db, "DeleteItem", `{`+keyA+`}`)
	mustServe(t, db, "DeleteItem", `{`+keyA+`}`)
	want := []string{
		`PutItem {"id":{"S":"a"}}: null > {"id":{"S":"a"}}`,
		`PutItem {"id":{"S":"a"}}: {"id":{"S":"a"}} > {"id":{"S":"a"}}`,
		`UpdateItem {"id":{"S":"a"}}: {"id":{"S":"a"}} > {"id":{"S":"a"},"n":{"N":"1"}}`,
		`DeleteItem {"id":{"S":"a"}}: {"id":{"S":"a"},"n":{"N":"1"}} > null`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

func TestScanPages(t *testing.T) {
	db := newDB(t)
	for _, id := range []string{"c", "a", "d", "b"} {
		put(t, db, `{"id":{"S":"`+id+`"},"n":{"S":"`+id+`"}}`)
	}
	for _, c := range []struct{ parameters, want string }{
		{`"Select":"COUNT"`, `{"Count":4,"ScannedCount":4}`},
		{`"Limit":2,"ProjectionExpression":"n"`, `{"Items":[{"n":{"S":"a"}},{"n":{"S":"b"}}],"Count":2,"ScannedCount":2,"LastEvaluatedKey":{"id":{"S":"b"}}}`},
		{`"ExclusiveStartKey":{"id":{"S":"b"}},"Select":"COUNT"`, `{"Count":2,"ScannedCount":2}`},
		{`"ExclusiveStartKey":{"id":{"S":"bb"}},"Select":"COUNT"`, `{"Count":2,"ScannedCount":2}`},
		{`"FilterExpression":"n > :x","ExpressionAttributeValues":{":x":{"S":"c"}}`, `{"Items":[{"id":{"S":"d"},"n":{"S":"d"}}],"Count":1,"ScannedCount":4}`},
	} {
		if got := mustServe(t, db, "Scan", `{"TableName":"records",`+c.parameters+`}`); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.parameters, got, c.want)
		}
	}
}

func TestSortKey(t *testing.T) {
	db := memdynamo.New(time.Now)
	mustServe(t, db, "CreateTable", `{"TableName":"events","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"at","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"at","AttributeType":"N"}]}`)
	for _, at := range []string{"10", "9", "-1", "9.0"} {
		mustServe(t, db, "PutItem", `{"TableName":"events","Item":{"id":{"S":"a"},"at":{"N":"`+at+`"}}}`)
	}
	if got := fmt.Sprint(db.Items("events")); got != `[{"at":{"N":"-1"},"id":{"S":"a"}} {"at":{"N":"9"},"id":{"S":"a"}} {"at":{"N":"10"},"id":{"S":"a"}}]` {
		t.Error(got)
	}
}

// TestSDKClient runs the SDK's own client against memdynamo in a synctest bubble, in which its
// retries take no time.
func TestSDKClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memdynamo.New(time.Now)
		mustServe(t, db, "CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST",
			"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
		faults := &faulty{Client: memdynamo.Client{DB: db}}
		client := dynamodb.New(dynamodb.Options{
			Region: "us-east-1", HTTPClient: faults,
			Credentials: credentials.NewStaticCredentialsProvider("fake", "fake", ""),
		})
		input := &dynamodb.PutItemInput{
			TableName: aws.String("records"), Item: map[string]types.AttributeValue{"id": s("a"), "text": s("<é&>")},
			ConditionExpression: aws.String("attribute_not_exists(id)"), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}
		for _, typ := range []string{
			memdynamo.ProvisionedThroughputExceeded, memdynamo.Throttling, memdynamo.RequestLimitExceeded, memdynamo.InternalServerError,
			memdynamo.ServiceUnavailable, memdynamo.TransactionConflict,
		} {
			status, header, body := memdynamo.Error(typ, "said so")
			faults.next = []answer{{status, header, body}, {status, header, body}, {status, header, body}}
			_, err := client.PutItem(t.Context(), input)
			var api smithy.APIError
			if !errors.As(err, &api) || api.ErrorCode() != typ || api.ErrorMessage() != "said so" {
				t.Errorf("%s: got %v", typ, err)
			}
			faults.next = nil
		}
		if n := len(db.Items("records")); n != 0 {
			t.Errorf("failed requests left %d items", n)
		}

		status, header, body := memdynamo.Error(memdynamo.InternalServerError, "once")
		faults.next = []answer{{status, header, body}}
		if _, err := client.PutItem(t.Context(), input); err != nil {
			t.Errorf("a retry did not get through: %v", err)
		}
		_, err := client.PutItem(t.Context(), input)
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) || show(failed.Item) != show(input.Item) {
			t.Errorf("got %v, want the item that was there", err)
		}
	})
}

// faulty first returns the given replies, then serves requests.
type faulty struct {
	memdynamo.Client
	next []answer
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (f *faulty) Do(req *http.Request) (*http.Response, error) {
	if len(f.next) == 0 {
		return f.Client.Do(req)
	}
	a := f.next[0]
	f.next = f.next[1:]
	return memdynamo.Response(req, a.status, a.header, a.body), nil
}

func TestHeaders(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.FixedZone("east", 3600))
	db := memdynamo.New(func() time.Time { return now })
	check := func(header http.Header, body []byte, want map[string]string) {
		t.Helper()
		want["X-Amz-Crc32"] = strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
		want["Content-Type"] = "application/x-amz-json-1.0"
		want["Content-Length"] = strconv.Itoa(len(body))
		for name, value := range want {
			if got := header.Get(name); got != value {
				t.Errorf("%s is %q, want %q", name, got, value)
			}
		}
	}
	_, header, body := db.Serve("DescribeTable", []byte(`{"TableName":"records"}`))
	check(header, body, map[string]string{
		"Date": "Sat, 21 Nov 2026 14:00:00 GMT", "X-Amzn-Requestid": "WIRE" + strings.Repeat("0", 47) + "1",
	})
	for typ, want := range map[string]int{
		memdynamo.InternalServerError: http.StatusInternalServerError, memdynamo.ServiceUnavailable: http.StatusServiceUnavailable,
		memdynamo.Throttling: http.StatusBadRequest, memdynamo.TransactionConflict: http.StatusBadRequest,
	} {
		status, header, body := memdynamo.Error(typ, "m")
		if status != want {
			t.Errorf("%s: status %d, want %d", typ, status, want)
		}
		check(header, body, map[string]string{})
	}
}

func TestClientRefusesWhatIsNotDynamoDB(t *testing.T) {
	client := &memdynamo.Client{DB: memdynamo.New(time.Now)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "Kinesis_20131202.PutRecord")
	if resp, err := client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		t.Error("a request to Kinesis was served")
	} else if want := `memdynamo: X-Amz-Target is "Kinesis_20131202.PutRecord": not a request to DynamoDB`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestDeterministic checks that the same requests get the same bytes.
func TestDeterministic(t *testing.T) {
	run := func() []byte {
		var out bytes.Buffer
		db := newDB(t)
		for _, r := range []struct{ op, body string }{
			{"DescribeTable", `{"TableName":"records"}`},
			{"PutItem", `{"TableName":"records","Item":` + observedItem + `}`},
			{"UpdateItem", `{` + keyA + `,"UpdateExpression":"SET q = n, r = s, m.x = l, m.y = ss REMOVE l[0], l[1] ADD z :x","ExpressionAttributeValues":{":x":{"NS":["3","1"]}},"ReturnValues":"UPDATED_NEW"}`},
			{"Scan", `{"TableName":"records","ReturnConsumedCapacity":"INDEXES"}`},
			{"GetItem", `{` + keyA + `,"ExpressionAttributeNames":{"#b":"x","#a":"x"},"ProjectionExpression":"n"}`},
		} {
			status, header, body := db.Serve(r.op, []byte(r.body))
			_, _ = fmt.Fprintln(&out, status)
			_ = header.Write(&out)
			out.Write(body)
		}
		return out.Bytes()
	}
	first := run()
	for range 20 {
		if again := run(); !bytes.Equal(first, again) {
			t.Fatalf("first\n%s\nagain\n%s", first, again)
		}
	}
}

// TestServeFromManyGoroutines increments a counter from several goroutines and checks that no
// update is lost.
func TestServeFromManyGoroutines(t *testing.T) {
	db := newDB(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				db.Serve("UpdateItem", []byte(`{`+keyA+`,"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`))
			}
		})
	}
	all.Wait()
	if item, _ := db.Item("records", memdynamo.Item{"id": memdynamo.String("a")}); item.String() != `{"id":{"S":"a"},"n":{"N":"400"}}` {
		t.Errorf("got %v", item)
	}
}
