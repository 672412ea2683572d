package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Refund is one refund of a payment.
type Refund struct {
	ID        string // see RefundID
	PaymentID string
	Owner     string // of the payment
	Amount    int64  // minor units, positive
}

// MaxRefunds is how many refunds one payment may have. It keeps the item far
// below DynamoDB's 400 KB.
const MaxRefunds = 100

// Errors of [Table.Refund] after which surely nothing was refunded.
var (
	ErrExceedsRest    = errors.New("more than is left to refund")
	ErrTooManyRefunds = errors.New("too many refunds of one payment")
	ErrOtherRefund    = errors.New("another refund has this ID")
)

// Refund takes the amount from what is left to refund, in one conditional
// write, and returns the payment as it is then: no two refunds can overdraw it
// between a check and a write. It fails with [ErrNotFound], [ErrExceedsRest]
// (with the payment as it is), [ErrTooManyRefunds] or [ErrOtherRefund]; after any
// other error it is not known whether the refund was written.
//
// The refund's ID is written along and asked for in the condition: without it a
// request that the SDK sends again after a lost reply would refund twice, and so
// would a handler that runs again after its first attempt died.
func (t Table) Refund(ctx context.Context, r Refund) (Payment, error) {
	out, err := t.API.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           &t.Name,
		Key:                 key(r.PaymentID),
		UpdateExpression:    aws.String("SET refundable = refundable - :amount, refunds.#refund = :amount"),
		ConditionExpression: aws.String("#owner = :owner AND refundable >= :amount AND size(refunds) < :max AND attribute_not_exists(refunds.#refund)"),
		ExpressionAttributeNames: map[string]string{
			"#owner":  "owner", // a reserved word
			"#refund": r.ID,
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner":  &types.AttributeValueMemberS{Value: r.Owner},
			":amount": number(r.Amount),
			":max":    number(MaxRefunds),
		},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	refused := (*types.ConditionalCheckFailedException)(nil)
	switch {
	case errors.As(err, &refused):
		return r.refused(refused.Item)
	case err != nil:
		return Payment{}, fmt.Errorf("refund %d of payment %s: %w", r.Amount, r.PaymentID, err)
	}
	return payment(out.Attributes, r.Owner)
}

// refused finds out from the item that refused a refund why it did.
func (r Refund) refused(item map[string]types.AttributeValue) (Payment, error) {
	p, err := payment(item, r.Owner)
	if err != nil {
		return Payment{}, err
	}
	if amount, done := p.Refunds[r.ID]; done {
		if amount != r.Amount {
			return p, ErrOtherRefund
		}
		return p, nil // by an earlier attempt, of the handler or on the wire
	}
	if len(p.Refunds) >= MaxRefunds {
		return p, ErrTooManyRefunds
	}
	return p, ErrExceedsRest
}
