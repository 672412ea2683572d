package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tables reads the tables directly, without the functions.
type tables struct {
	client    *dynamodb.Client
	records   string
	payments  string
	accounts  string
	transfers string
	receipts  string
}

// record is an item of the idempotency table.
type record struct {
	ID         string `dynamodbav:"id"`
	Status     string `dynamodbav:"status"`
	Attempt    int    `dynamodbav:"attempt"`
	Outcome    string `dynamodbav:"outcome"`
	Token      string `dynamodbav:"token"`
	Validation string `dynamodbav:"validation"`
	Scope      string `dynamodbav:"scope"`
	LeaseEnd   int64  `dynamodbav:"in_progress_expiration"` // epoch milliseconds
	Expiration int64  `dynamodbav:"expiration"`             // epoch seconds
	Data       string `dynamodbav:"data"`
}

// behindQueues reports whether the record belongs to a function that no client calls.
func (r record) behindQueues() bool {
	return strings.HasPrefix(r.Scope, "receipts ") || strings.HasPrefix(r.Scope, "notifications ")
}

// payment is an item of the payments table: a payment, or a refund.
type payment struct {
	ID         string `dynamodbav:"id"`
	Amount     int64  `dynamodbav:"amount"`
	Refundable int64  `dynamodbav:"refundable"`
	PaymentID  string `dynamodbav:"payment_id"` // the refunded payment; empty for a payment
	Owner      string `dynamodbav:"owner"`
	Reference  string `dynamodbav:"reference"`
}

// account is an item of the accounts table.
type account struct {
	ID      string `dynamodbav:"id"`
	Balance int64  `dynamodbav:"balance"`
}

func (t tables) allRecords(ctx context.Context) ([]record, error) {
	return scan[record](ctx, t.client, t.records)
}

func (t tables) allPayments(ctx context.Context) ([]payment, error) {
	return scan[payment](ctx, t.client, t.payments)
}

// transfer is an item of the transfers table.
type transfer struct {
	ID        string `dynamodbav:"id"`
	To        string `dynamodbav:"to"` // owner of the recipient's account
	Amount    int64  `dynamodbav:"amount"`
	Currency  string `dynamodbav:"currency"`
	CreatedAt string `dynamodbav:"created_at"`
	Status    string `dynamodbav:"status"`
}

func (t tables) allTransfers(ctx context.Context) ([]transfer, error) {
	return scan[transfer](ctx, t.client, t.transfers)
}

// endTransfer does what the transfers function does at its end: in one transaction, it changes
// the transfer from reserved to done, and adds the amount to the recipient's account.
func (t tables) endTransfer(ctx context.Context, end transfer) error {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	_, err := t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &t.transfers, Key: map[string]types.AttributeValue{"id": text(end.ID)},
			UpdateExpression: aws.String("SET #status = :done"), ConditionExpression: aws.String("#status = :reserved"),
			ExpressionAttributeNames:  map[string]string{"#status": "status"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":done": text("done"), ":reserved": text("reserved")},
		}},
		{Update: &types.Update{
			TableName: &t.accounts, Key: map[string]types.AttributeValue{"id": text(end.Currency + " " + end.To)},
			UpdateExpression: aws.String("SET balance = balance + :amount"), ConditionExpression: aws.String("attribute_exists(id)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: strconv.FormatInt(end.Amount, 10)}},
		}},
	}})
	if err != nil {
		return fmt.Errorf("end the transfer %s: %w", end.ID, err)
	}
	return nil
}

// receipt is an item of the receipts table.
type receipt struct {
	PaymentID string `dynamodbav:"payment_id"`
	Owner     string `dynamodbav:"owner"`
	Amount    int64  `dynamodbav:"amount"`
	Currency  string `dynamodbav:"currency"`
}

func (t tables) allReceipts(ctx context.Context) ([]receipt, error) {
	return scan[receipt](ctx, t.client, t.receipts)
}

func (t tables) allAccounts(ctx context.Context) ([]account, error) {
	return scan[account](ctx, t.client, t.accounts)
}

// scan reads a whole table with consistent reads. The tables of the demo are small.
func scan[T any](ctx context.Context, client *dynamodb.Client, table string) ([]T, error) {
	var all []T
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the table %s: %w", table, err)
		}
		var items []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &items); err != nil {
			return nil, fmt.Errorf("decode the items of %s: %w", table, err)
		}
		all = append(all, items...)
	}
	return all, nil
}
