package memdynamo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// newDB returns a DB with one table, "records", whose key is the string id. Its clock stands
// still.
func newDB(t *testing.T) *memdynamo.DB {
	t.Helper()
	db := memdynamo.New(func() time.Time { return time.Unix(1_800_000_000, 0) })
	mustServe(t, db, "CreateTable", `{"TableName":"records","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	return db
}

// mustServe returns the reply to a request that must succeed.
func mustServe(t *testing.T, db *memdynamo.DB, op, body string) string {
	t.Helper()
	status, _, out := db.Serve(op, []byte(body))
	if status != http.StatusOK {
		t.Fatalf("%s %s\n got %d %s", op, body, status, out)
	}
	return string(out)
}

// refusal returns the type (without namespace) and the message of the error for a request, and
// the status. Type and message are empty if the request succeeds.
func refusal(db *memdynamo.DB, op, body string) (typ, message string, status int) {
	status, _, out := db.Serve(op, []byte(body))
	if status == http.StatusOK {
		return "", "", status
	}
	var e struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(out, &e); err != nil {
		return "unreadable", err.Error(), status
	}
	_, typ, _ = strings.Cut(e.Type, "#")
	return typ, e.Message, status
}

func observedRequest(o observed, parameter, rest string) string {
	expression, err := json.Marshal(o.expression)
	if err != nil {
		panic(err) // can't happen: a string can always be encoded
	}
	body := fmt.Sprintf(`{"TableName":"records","Key":{"id":{"S":"a"}},%q:%s%s`, parameter, expression, rest)
	if o.values != "" {
		body += `,"ExpressionAttributeValues":` + o.values
	}
	return body + "}"
}

func TestObservedConditions(t *testing.T) {
	for _, o := range observedConditions {
		db := newDB(t)
		mustServe(t, db, "PutItem", `{"TableName":"records","Item":`+observedItem+`}`)
		typ, message, _ := refusal(db, "DeleteItem", observedRequest(o, "ConditionExpression", ""))
		got := strings.TrimPrefix(message, "Invalid ConditionExpression: ")
		switch typ {
		case "":
			got = "true"
		case memdynamo.ConditionalCheckFailed:
			got = "false"
		}
		if got != o.want {
			t.Errorf("%q %s\n got %s\nwant %s", o.expression, o.values, got, o.want)
		}
	}
}

func TestObservedUpdates(t *testing.T) {
	for _, o := range observedUpdates {
		db := newDB(t)
		mustServe(t, db, "PutItem", `{"TableName":"records","Item":`+observedItem+`}`)
		before, _ := db.Item("records", memdynamo.Item{"id": memdynamo.String("a")})
		_, message, status := refusal(db, "UpdateItem", observedRequest(o, "UpdateExpression", ""))
		after, _ := db.Item("records", memdynamo.Item{"id": memdynamo.String("a")})
		got := strings.TrimPrefix(message, "Invalid UpdateExpression: ")
		if status == http.StatusOK {
			got = difference(before, after)
		} else if difference(before, after) != "{}" {
			t.Errorf("%q %s was refused and changed the item: %s", o.expression, o.values, difference(before, after))
		}
		if got != o.want {
			t.Errorf("%q %s\n got %s\nwant %s", o.expression, o.values, got, o.want)
		}
	}
}

// difference returns the attributes that differ after an update, in the form of observedUpdates.
// The value is null for an attribute that was removed.
func difference(before, after memdynamo.Item) string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := before[name]
		is, has := after[name]
		if had == has && was.String() == is.String() {
			continue
		}
		text := "null"
		if has {
			text = is.String()
		}
		parts = append(parts, fmt.Sprintf("%q:%s", name, text))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
