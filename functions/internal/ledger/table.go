package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// API is what the ledger needs of a *dynamodb.Client.
type API interface {
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

// ErrOtherPayment says that the ID belongs to a payment of something else.
var ErrOtherPayment = errors.New("another payment has this ID")

// Pay makes a payment, unless an earlier run made it already, and returns it as
// it stands: by an earlier run, it has that one's CreatedAt, and may have been
// refunded since. It fails with [ErrOtherPayment] if what stands there is of
// another owner, amount, currency or reference; after any other error it is not
// known whether the payment was written.
//
// It is one write, which the SDK may send again after a lost reply: whatever is
// there already stays.
func (t Table) Pay(ctx context.Context, p Payment) (Payment, error) {
	p.Runs = []string{rand.Text()}
	item, err := attributevalue.MarshalMap(p)
	if err != nil {
		return Payment{}, fmt.Errorf("encode payment %s: %w", p.ID, err)
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: key(p.ID), ReturnValues: types.ReturnValueAllNew,
		ConditionExpression: aws.String("attribute_not_exists(#owner) OR " +
			"(#owner = :owner AND #amount = :amount AND #currency = :currency AND #reference = :reference)"),
		ExpressionAttributeNames:  map[string]string{"#runs": "runs"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":runs": item["runs"]},
	}
	var sets []string
	for name, value := range item {
		if name != "id" && name != "runs" {
			sets = append(sets, fmt.Sprintf("#%s = if_not_exists(#%[1]s, :%[1]s)", name))
			in.ExpressionAttributeNames["#"+name], in.ExpressionAttributeValues[":"+name] = name, value
		}
	}
	in.UpdateExpression = aws.String("SET " + strings.Join(sets, ", ") + " ADD #runs :runs")
	out, err := t.API.UpdateItem(ctx, in)
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return Payment{}, ErrOtherPayment
	}
	if err != nil {
		return Payment{}, fmt.Errorf("write payment %s: %w", p.ID, err)
	}
	return payment(out.Attributes, p.Owner)
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
