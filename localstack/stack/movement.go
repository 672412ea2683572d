package stack

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Movement is a payment, a refund or a transfer of this project's own functions.
type Movement struct {
	Amount   int64  `dynamodbav:"amount"`   // minor units, such as cents
	Currency string `dynamodbav:"currency"` // ISO 4217
	Status   string `dynamodbav:"status"`   // of a transfer: reserved, done or refused
}

// The beginnings of the IDs of movements.
const (
	PaymentPrefix  = "pay_"
	RefundPrefix   = "ref_"
	TransferPrefix = "tra_"
)

// Movement reads a movement by its ID, with a consistent read. The result ok is false if there
// is no such movement.
func (s *Stack) Movement(ctx context.Context, id string) (m Movement, ok bool, err error) {
	table := "PaymentsTable"
	if strings.HasPrefix(id, TransferPrefix) {
		table = "TransfersTable"
	}
	ok, err = s.item(ctx, table, id, &m)
	return m, ok, err
}

// Balance reads the balance of an account in minor units of its currency, with a consistent
// read. The account's ID is the currency, a space, and the owner; see OpenAccount. The result
// ok is false if there is no such account.
func (s *Stack) Balance(ctx context.Context, account string) (balance int64, ok bool, err error) {
	var item struct {
		Balance int64 `dynamodbav:"balance"`
	}
	ok, err = s.item(ctx, "AccountsTable", account, &item)
	return item.Balance, ok, err
}

// item reads the item of a table that has the id, and reports whether there is one.
func (s *Stack) item(ctx context.Context, table, id string, into any) (bool, error) {
	got, err := s.database.Client().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.Table(table)), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		return false, fmt.Errorf("read %s of %s: %w", id, table, err)
	}
	if got.Item == nil {
		return false, nil
	}
	if err := attributevalue.UnmarshalMap(got.Item, into); err != nil {
		return false, fmt.Errorf("decode %s of %s: %w", id, table, err)
	}
	return true, nil
}
