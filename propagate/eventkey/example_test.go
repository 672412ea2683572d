package eventkey_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate/eventkey"
)

// The handler announces its result. If it dies afterwards and runs again, the second event has the
// same key.
func ExampleEntry() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "payments" })
	_, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "pay", Key: "order-1"}, func(ctx context.Context) (string, error) {
		event := types.PutEventsRequestEntry{
			Source:     aws.String("example.payments"),
			DetailType: aws.String("Order paid"),
			Detail:     aws.String(`{"order": 1}`),
		}
		if err := eventkey.Entry(ctx, "order paid", &event); err != nil {
			return "", err
		}
		// Here: client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{event}})
		fmt.Println(*event.Detail)
		return "paid", nil
	})
	fmt.Println(err)
	// Output:
	// {"x-idempotency-key":"c2bdc60e-c7e1-876d-bd85-ed48c84373db","order": 1}
	// <nil>
}
