package sqskey_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate/sqskey"
)

// The handler tells other services its result. If it dies afterwards and runs again, they see the
// same key.
func ExampleMessage() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "payments" })
	attempt := 0
	pay := func(ctx context.Context) (string, error) {
		input := &sqs.SendMessageInput{
			QueueUrl:    aws.String("https://sqs.eu-central-1.amazonaws.com/111122223333/receipts"),
			MessageBody: aws.String("order 1 is paid"),
		}
		if err := sqskey.Message(ctx, "receipt", input); err != nil {
			return "", err
		}
		// Here: client.SendMessage(ctx, input)
		fmt.Println(aws.ToString(input.MessageAttributes["x-idempotency-key"].StringValue))
		if attempt++; attempt == 1 {
			return "", fmt.Errorf("the next call timed out")
		}
		return "paid", nil
	}
	for range 2 {
		answer, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "pay", Key: "order-1"}, pay)
		fmt.Printf("%q %v\n", answer, err)
	}
	// Output:
	// ad151c88-49de-8fa8-a4cb-fc3cc6ee1bfe
	// "" the next call timed out
	// ad151c88-49de-8fa8-a4cb-fc3cc6ee1bfe
	// "paid" <nil>
}

// Each entry of the batch gets its own key, derived from its Id. On a FIFO queue, the key is also
// the MessageDeduplicationId.
func ExampleBatch() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "payments" })
	_, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "invoice", Key: "run-7"}, func(ctx context.Context) (int, error) {
		input := &sqs.SendMessageBatchInput{Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("invoice-1"), MessageBody: aws.String("…"), MessageGroupId: aws.String("customer-1")},
			{Id: aws.String("invoice-2"), MessageBody: aws.String("…"), MessageGroupId: aws.String("customer-2")},
		}}
		if err := sqskey.Batch(ctx, "invoices", input, func(o *sqskey.Options) { o.Deduplicate = true }); err != nil {
			return 0, err
		}
		for _, e := range input.Entries {
			fmt.Println(*e.Id, aws.ToString(e.MessageDeduplicationId))
		}
		return len(input.Entries), nil
	})
	fmt.Println(err)
	// Output:
	// invoice-1 ed7d7ad6-eb0d-84b3-9229-1c9af4c5aa93
	// invoice-2 02b8dd1e-6eb3-8189-8f77-9100f78727a4
	// <nil>
}
