package stack

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Payment is a payment of this project's own functions.
type Payment struct {
	Amount   int64  `dynamodbav:"amount"`   // minor units, such as cents
	Currency string `dynamodbav:"currency"` // ISO 4217
}

// Payment reads a payment by its ID from the table of payments, with a consistent read. The
// result ok is false if the table has no such payment.
func (s *Stack) Payment(ctx context.Context, id string) (p Payment, ok bool, err error) {
	got, err := s.database.Client().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.Table("PaymentsTable")), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		return Payment{}, false, fmt.Errorf("read payment %s: %w", id, err)
	}
	if got.Item == nil {
		return Payment{}, false, nil
	}
	if err := attributevalue.UnmarshalMap(got.Item, &p); err != nil {
		return Payment{}, false, fmt.Errorf("decode payment %s: %w", id, err)
	}
	return p, true, nil
}
