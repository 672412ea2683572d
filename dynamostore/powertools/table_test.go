package powertools_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// The guard and Powertools share a table, with and without a sort key, and no record of the old
// function changes. `make powertools` shows the same with records of the real libraries.
func TestD4_OneTable(t *testing.T) {
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	for _, sortKey := range []string{"", "SK"} {
		client, table := server.Client(), "test-"+rand.Text()
		options := func(o *dynamostore.Options) {
			if sortKey != "" {
				o.IDAttribute, o.SortKeyAttribute = "PK", sortKey
			}
		}
		if err := dynamostore.CreateTable(t.Context(), client, table, options); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
				t.Error(err)
			}
		})
		old := func(order int, changed item) item {
			id, err := powertools.Python.ID("payments.app.handler", fmt.Append(nil, order))
			if err != nil {
				t.Fatal(err)
			}
			itm := (&migration{clock: idemtest.NewClock()}).stored(fmt.Sprintf(`{"statusCode": 200, "body": "%d"}`, order), changed)
			itm["id"] = str(id)
			if sortKey != "" {
				itm["PK"], itm["SK"] = str("idempotency#payments"), str(id)
				delete(itm, "id")
			}
			return itm
		}
		theirs := []item{
			old(1, nil),
			old(2, item{"status": str("INPROGRESS"), "data": nil, "in_progress_expiration": number(time.Now().Add(time.Hour).UnixMilli())}),
			old(3, item{"status": str("INPROGRESS"), "data": nil}),
		}
		for _, itm := range theirs {
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: itm}); err != nil {
				t.Fatal(err)
			}
		}
		records := powertools.New(client, table, powertools.Python, "payments.app.handler", func(o *powertools.Options) {
			if sortKey != "" {
				o.IDAttribute, o.SortKeyAttribute, o.PartitionKey = "PK", sortKey, "idempotency#payments"
			}
		})
		handle := lambdaidem.New(dynamostore.New(client, table, options)).APIGatewayV2(powertools.Handler(records, body,
			func(context.Context, request) (response, error) { return response{StatusCode: 201, Body: "new"}, nil }))
		for order, want := range map[int]response{1: {StatusCode: 200, Body: "1"}, 2: {StatusCode: 409}, 3: {StatusCode: 201, Body: "new"}, 4: {StatusCode: 201, Body: "new"}} {
			for range 2 {
				e := idemtest.Request{Path: "/payments", Key: fmt.Sprint(order), Body: fmt.Sprint(order)}.APIGatewayV2()
				got, err := handle(idemtest.Invocation(t, time.Minute), e)
				if err != nil || got.StatusCode != want.StatusCode || want.Body != "" && got.Body != want.Body {
					t.Errorf("order %d: %+v, %v; want %+v", order, got, err, want)
				}
			}
		}
		for _, itm := range theirs {
			key := item{"id": itm["id"]}
			if sortKey != "" {
				key = item{"PK": itm["PK"], "SK": itm["SK"]}
			}
			out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
			if err != nil || !reflect.DeepEqual(out.Item, itm) {
				t.Errorf("the old item was %v, and is %v, %v", itm, out.Item, err)
			}
		}
	}
}
