package dynamostore_test

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Transfer is the request.
type Transfer struct {
	ID, From, To string
	Amount       int
}

// Receipt is the answer.
type Receipt struct{ ID string }

func transfer(ctx context.Context, in Transfer) (Receipt, error) {
	tx := dynamostore.Enlist(ctx)
	tx.UpdateValue("debit", "accounts", map[string]string{"id": in.From}, "SET balance = balance - :amount", dynamostore.Args{":amount": in.Amount}).
		If("balance >= :amount", nil).
		Else(lambdaidem.Reject(402, "insufficient_funds", "The account does not hold that much."))
	tx.UpdateValue("credit", "accounts", map[string]string{"id": in.To}, "SET balance = balance + :amount", dynamostore.Args{":amount": in.Amount}).
		If("attribute_exists(id)", nil).
		Else(lambdaidem.Reject(404, "no_account", "There is no such account."))
	return Receipt{ID: lambdaidem.RecordID(ctx)}, nil
}

// The handler's writes and its answer are one transaction: money is moved exactly once for each
// transfer.
func ExampleEnlist() {
	store := dynamostore.New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency")
	guard := lambdaidem.New(store)
	key := func(_ context.Context, in Transfer) (string, error) { return in.ID, nil }
	lambda.Start(lambdaidem.Handler(guard, "transfer", key, transfer))
}

// bank is another service that accepts idempotency keys.
type bank interface {
	Notify(ctx context.Context, key string, in Transfer) (Receipt, error)
}

// notify notifies the bank once for each record. If an attempt dies before the result is stored,
// the bank recognizes the key of the next attempt.
func notify(ctx context.Context, bank bank, in Transfer) (Receipt, error) {
	receipt, err := lambdaidem.Step(ctx, "notify", func(ctx context.Context) (Receipt, error) {
		return bank.Notify(ctx, lambdaidem.DownstreamKey(ctx, "notify"), in)
	})
	return receipt, err
}

// This handler calls another service in a step; see docs/effects.md.
func ExampleEnlist_step() { _ = notify }
