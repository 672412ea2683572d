package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// API is what the ledger needs of a *dynamodb.Client.
type API interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Table is the table of payments.
type Table struct {
	API  API
	Name string
}

// ErrNotFound says that there is no such payment, or that it is another
// owner's: the two look alike, so that nobody learns which IDs exist.
var ErrNotFound = errors.New("no such payment")

// Put writes a payment. After any error it is not known whether it was written.
//
// It is safe for the SDK to send it again after a lost reply: the ID is this
// payment's alone, so a second write changes nothing.
func (t Table) Put(ctx context.Context, p Payment) error {
	item, err := attributevalue.MarshalMap(p)
	if err != nil {
		return fmt.Errorf("encode payment %s: %w", p.ID, err)
	}
	if _, err := t.API.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.Name, Item: item}); err != nil {
		return fmt.Errorf("write payment %s: %w", p.ID, err)
	}
	return nil
}

// Get reads a payment of this owner, consistently: who has just paid sees it.
// The error is [ErrNotFound] if there is none.
func (t Table) Get(ctx context.Context, owner, id string) (Payment, error) {
	out, err := t.API.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: key(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return Payment{}, fmt.Errorf("read payment %s: %w", id, err)
	}
	return payment(out.Item, owner)
}

func key(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

// payment decodes an item of this owner.
func payment(item map[string]types.AttributeValue, owner string) (Payment, error) {
	var p Payment
	if len(item) == 0 {
		return p, ErrNotFound
	}
	if err := attributevalue.UnmarshalMap(item, &p); err != nil {
		return Payment{}, fmt.Errorf("decode a payment: %w", err)
	}
	if p.Owner != owner {
		return Payment{}, ErrNotFound
	}
	return p, nil
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
