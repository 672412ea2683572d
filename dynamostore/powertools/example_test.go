package powertools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// selectOrder selects what the old function selected by the expression
// powertools_json(body).[user_id, order_id]. A json.RawMessage preserves the text of numbers.
func selectOrder(_ context.Context, e events.APIGatewayV2HTTPRequest) (powertools.Selection, error) {
	var body struct {
		UserID  json.RawMessage `json:"user_id"`
		OrderID json.RawMessage `json:"order_id"`
	}
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil {
		return powertools.Selection{}, lambdaidem.Reject(400, "invalid_json", "The body is not JSON.")
	}
	data, err := json.Marshal([]json.RawMessage{body.UserID, body.OrderID}) // a missing member is null, as in JMESPath
	return powertools.Selection{Data: data}, err
}

func createPayment(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
}

// A function in Go takes over from one in Python.
func ExampleHandler() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	guard := lambdaidem.New(dynamostore.New(client, "idempotency"))
	records := powertools.New(client, "idempotency", powertools.Python, "payments.app.handler", func(o *powertools.Options) {
		o.Until = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC) // an hour and a timeout after the old function was stopped
	})
	lambda.Start(guard.APIGatewayV2(powertools.Handler(records, selectOrder, createPayment)))
}

// oldTable has the record of one payment.
type oldTable struct{}

func (oldTable) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if id, ok := in.Key["id"].(*types.AttributeValueMemberS); !ok || id.Value != "payments.app.charge#729040816f7330c4cb31f54a56f59a7b" {
		return &dynamodb.GetItemOutput{}, nil
	}
	return &dynamodb.GetItemOutput{Item: map[string]types.AttributeValue{
		"id":         in.Key["id"],
		"status":     &types.AttributeValueMemberS{Value: "COMPLETED"},
		"expiration": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Hour).Unix())},
		"data":       &types.AttributeValueMemberS{Value: `{"receipt": "r-1"}`},
	}}, nil
}

type chargeReceipt struct {
	Receipt string `json:"receipt"`
}

// The old program decorated the function charge with idempotent_function. The new one calls Find in
// a Do.
func ExampleFind() {
	guard := lambdaidem.New(memstore.New())
	records := powertools.New(oldTable{}, "idempotency", powertools.Python, "payments.app.charge")

	charge := func(order string) (chargeReceipt, error) {
		call := lambdaidem.Call{Operation: "charge", Key: order}
		return lambdaidem.Do(context.Background(), guard, call, func(ctx context.Context) (chargeReceipt, error) {
			data, err := json.Marshal(order)
			if err != nil {
				return chargeReceipt{}, err
			}
			old, found, err := powertools.Find[chargeReceipt](ctx, records, powertools.Selection{Data: data})
			if err != nil || found {
				return old, err
			}
			fmt.Println("charging", order)
			return chargeReceipt{"new"}, nil
		})
	}
	for _, order := range []string{"order-1", "order-2"} {
		fmt.Println(charge(order))
	}
	// Output:
	// {r-1} <nil>
	// charging order-2
	// {new} <nil>
}

func ExampleLanguage_ID() {
	id, err := powertools.Python.ID("payments.app.handler", json.RawMessage(`["u-1", 42]`))
	fmt.Println(id, err)
	id, err = powertools.TypeScript.ID("payments", json.RawMessage(`["u-1", 42]`))
	fmt.Println(id, err)
	// Output:
	// payments.app.handler#e31b8b84a9be62e9ae878d3fb2b80004 <nil>
	// payments#r/fHjeLh4TciYPIhZpZEQQ== <nil>
}
