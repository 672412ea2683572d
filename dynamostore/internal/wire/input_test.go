package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"
)

// ok is an Answer that accepts every response as a success.
type ok struct{}

func (ok) Success(string) bool { return true }
func (ok) Refusal(string) bool { return false }

type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// sending returns a client and the bodies that it sends. A middleware of the user calls look with
// the input of each call.
func sending(answer string, look func(any)) (*Client, *[]string) {
	var bodies []string
	users := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
		HTTPClient: doFunc(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, err
		}),
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("users", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				look(in.Parameters)
				out, meta, err := next.HandleInitialize(ctx, in)
				if err == nil {
					look(out.Result)
				}
				return out, meta, err
			}), middleware.Before)
		}},
	})
	return New(users, Options{Attempts: 1, AttemptTimeout: 1 << 40, Random: func() float64 { return 0 }}), &bodies
}

const transaction = `{"ClientRequestToken":"t","TransactItems":[` +
	`{"Put":{"TableName":"a","Item":{"id":{"S":"1"},"b":{"B":"AA=="}},"ConditionExpression":"c","ExpressionAttributeNames":{"#x":"y"}}},` +
	`{"Update":{"TableName":"b","Key":{"id":{"N":"1"}},"UpdateExpression":"SET #x = :x","ExpressionAttributeValues":{":x":{"L":[{"BOOL":true}]}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}},` +
	`{"Delete":{"TableName":"c","Key":{"id":{"S":"2"}}}},{"ConditionCheck":{"TableName":"d","Key":{"id":{"S":"3"}},"ConditionExpression":"c"}}]}`

// A middleware of the user sees the request, and the bytes of the request are sent.
func TestMiddlewareSeesTheRequest(t *testing.T) {
	for op, body := range map[Operation]string{
		PutItem:            `{"TableName":"a","ConditionExpression":"c","ReturnValuesOnConditionCheckFailure":"ALL_OLD","Item":{"id":{"S":"1"}},"ExpressionAttributeValues":{":n":{"N":"1"}}}`,
		UpdateItem:         `{"TableName":"a","ReturnValues":"ALL_OLD","Key":{"id":{"S":"1"}},"UpdateExpression":"SET #x = :x","ExpressionAttributeNames":{"#x":"y"}}`,
		GetItem:            `{"TableName":"a","Key":{"id":{"S":"1"}},"ConsistentRead":true}`,
		TransactWriteItems: transaction,
	} {
		var seen []any
		c, bodies := sending(`{}`, func(what any) { seen = append(seen, what) })
		if fate, err := c.Do(t.Context(), &Request{Operation: op, Tables: []string{"a"}, Body: []byte(body), Answer: ok{}}); err != nil || fate != Applied {
			t.Fatalf("%s: %v, %v", op, fate, err)
		}
		if diff := cmp.Diff([]string{body}, *bodies); diff != "" {
			t.Errorf("%s: want - sent +:\n%s", op, diff)
		}
		plain := dynamodb.New(c.SDK().Options()) // uses the SDK's own protocol
		var err error
		switch in := seen[0].(type) {
		case *dynamodb.PutItemInput:
			_, err = plain.PutItem(t.Context(), in)
		case *dynamodb.UpdateItemInput:
			_, err = plain.UpdateItem(t.Context(), in)
		case *dynamodb.GetItemInput:
			_, err = plain.GetItem(t.Context(), in)
		case *dynamodb.TransactWriteItemsInput:
			_, err = plain.TransactWriteItems(t.Context(), in)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parsed(t, body), parsed(t, (*bodies)[1])); diff != "" {
			t.Errorf("%s: the input says - sent, + seen:\n%s", op, diff)
		}
	}
}

// If a middleware adds something to a request, it is sent, in the same bytes at each attempt. The
// middleware sees the response to it.
func TestMiddlewareMayAskForMore(t *testing.T) {
	var consumed []types.ConsumedCapacity
	c, bodies := sending(`{"ConsumedCapacity":[{"CapacityUnits":2}]}`, func(what any) {
		switch what := what.(type) {
		case *dynamodb.TransactWriteItemsInput:
			what.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		case *dynamodb.TransactWriteItemsOutput:
			consumed = append(consumed, what.ConsumedCapacity...)
		}
	})
	r := &Request{Operation: TransactWriteItems, Tables: []string{"a", "b", "c", "d"}, Body: []byte(transaction), Answer: ok{}}
	for range 5 {
		if _, err := c.Do(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range *bodies {
		if body != (*bodies)[0] || !strings.Contains(body, `"ReturnConsumedCapacity":"TOTAL"`) {
			t.Errorf("sent %s; first %s", body, (*bodies)[0])
		}
	}
	if len(*bodies) != 5 || len(consumed) != 5 || *consumed[0].CapacityUnits != 2 {
		t.Errorf("%d requests; middleware sees %+v", len(*bodies), consumed)
	}
}

// A request with a repeated member is not sent, because DynamoDB would choose one of the two
// values.
func TestAMemberIsNotSentTwice(t *testing.T) {
	c, bodies := sending(`{}`, func(any) {})
	body := `{"TableName":"a","Item":{"id":{"S":"1"},"id":{"S":"1"}}}`
	if fate, err := c.Do(t.Context(), &Request{Operation: PutItem, Tables: []string{"a"}, Body: []byte(body), Answer: ok{}}); err == nil || fate != NotApplied || len(*bodies) > 0 {
		t.Errorf("%v, %v; %d requests", fate, err, len(*bodies))
	}
}
