package main

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// tables is an HTTP client that acts as DynamoDB with three tables. denied is the action and the
// table for which the function lacks permission.
type tables struct {
	denied string
	asked  []string
}

func (d *tables) Do(r *http.Request) (*http.Response, error) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if action == "TransactWriteItems" {
		action = enlistedIn(string(body))
	}
	asked := action + " " + tableIn(string(body))
	d.asked = append(d.asked, asked)
	switch {
	case asked == d.denied:
		return answer(400, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized, on arn:aws:dynamodb:eu-west-1:123456789012:table/x"}`), nil
	case strings.HasPrefix(action, "enlisted "):
		return answer(400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"ConditionalCheckFailed"}]}`), nil
	case action == "PutItem" || action == "UpdateItem":
		return answer(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"refused"}`), nil
	case action == "DescribeTable":
		return answer(200, `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}}`), nil
	case action == "DescribeTimeToLive":
		return answer(200, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expiration"}}`), nil
	}
	return answer(200, `{}`), nil
}

// enlistedIn returns the action of a transaction that has only one, such as "enlisted Put".
func enlistedIn(body string) string {
	for _, action := range []string{"Put", "Update", "Delete", "ConditionCheck"} {
		if strings.Contains(body, `"`+action+`":{`) {
			return "enlisted " + action
		}
	}
	return ""
}

func tableIn(body string) string {
	for _, table := range []string{"records", "payments", "accounts"} {
		if strings.Contains(body, `"TableName":"`+table+`"`) {
			return table
		}
	}
	return ""
}

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}
}

// checked returns the function that uses these tables.
func checked(t *testing.T, d *tables) handlerV2 {
	t.Helper()
	store := dynamostore.New(dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""), HTTPClient: d,
		BaseEndpoint: aws.String("http://dynamodb.test"),
	}), "records")
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	return guarded(guard, newApplication(ledger.Payments{}, "accounts", newHealth(store, "payments", "accounts")))
}

func healthEvent() events.APIGatewayV2HTTPRequest {
	e := request("GET", "/health", "monitor")
	e.RouteKey = "GET /health"
	return e
}

func TestO3_HealthCoversWhatAPaymentWrites(t *testing.T) {
	for _, asked := range []string{"GetItem records", "PutItem records", "UpdateItem records", "enlisted Put payments", "enlisted Update accounts"} {
		all := &tables{}
		resp := call(t, checked(t, all), healthEvent())
		if resp.StatusCode != http.StatusOK || resp.Headers["Content-Type"] != "application/health+json" || resp.Body != `{"status":"pass"}` || !slices.Contains(all.asked, asked) {
			t.Errorf("%d %v %s after %v; want pass, and %s asked", resp.StatusCode, resp.Headers, resp.Body, all.asked, asked)
		}
		resp = call(t, checked(t, &tables{denied: asked}), healthEvent())
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Body != `{"status":"fail"}` {
			t.Errorf("without %s: %d %s; want fail, and nothing that names a table", asked, resp.StatusCode, resp.Body)
		}
	}
}

// A health check needs no key and writes no record.
func TestK4_HealthIsNotGuarded(t *testing.T) {
	d := &tables{}
	h := checked(t, d)
	e := healthEvent()
	e.Headers["idempotency-key"] = "key-1"
	first := call(t, h, e)
	asked := len(d.asked)
	d.denied = "GetItem records"
	again := call(t, h, e)
	if first.StatusCode != again.StatusCode || len(d.asked) != asked || first.Headers["Cache-Control"] == "" || again.Headers["Idempotency-Replayed"] != "" {
		t.Errorf("%+v, then %+v after %v; want the check's own answer, from what it keeps", first, again, d.asked)
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(again.Body), &document); err != nil || len(document) != 1 {
		t.Errorf("%s (%v); want the status alone", again.Body, err)
	}
}
