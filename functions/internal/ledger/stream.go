package ledger

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// IsNewPayment reports whether a record of the stream of the table of payments says
// that a payment was made. The stream tells of everything that is written there: of
// a refund, which is an item of its own, and of the payment that it takes from, which
// is updated. No such record is a payment.
//
// The records of one transaction arrive apart and mixed with others', so each is
// judged by itself.
func IsNewPayment(r events.DynamoDBEventRecord) bool {
	return events.DynamoDBOperationType(r.EventName) == events.DynamoDBOperationTypeInsert && IsPaymentID(PaymentIDOf(r))
}

// PaymentIDOf returns the ID of the item that a record is of.
func PaymentIDOf(r events.DynamoDBEventRecord) string { return r.Change.Keys["id"].String() }

// lasting are the members of a payment that never change.
var lasting = []string{"id", "owner", "amount", "currency", "reference", "created_at"}

// AsMade returns the record of a payment without what can change in a payment: what is left
// to be refunded, and whatever else its item may get. So it is the same record by which
// the stream told of the payment, whenever it is made of the table's item again.
func AsMade(r events.DynamoDBEventRecord) events.DynamoDBEventRecord {
	image := make(map[string]events.DynamoDBAttributeValue, len(lasting))
	for _, name := range lasting {
		if v, ok := r.Change.NewImage[name]; ok {
			image[name] = v
		}
	}
	r.Change.NewImage, r.Change.OldImage = image, nil
	return r
}

// PaymentOf returns the payment as it was written. The stream needs the view NEW_IMAGE.
func PaymentOf(r events.DynamoDBEventRecord) (Payment, error) {
	item := make(map[string]types.AttributeValue, len(r.Change.NewImage))
	for name, v := range r.Change.NewImage {
		switch v.DataType() {
		case events.DataTypeString:
			item[name] = &types.AttributeValueMemberS{Value: v.String()}
		case events.DataTypeNumber:
			item[name] = &types.AttributeValueMemberN{Value: v.Number()}
		default: // a payment has nothing else
		}
	}
	var p Payment
	if err := attributevalue.UnmarshalMap(item, &p); err != nil {
		return Payment{}, fmt.Errorf("decode payment %s of the stream: %w", PaymentIDOf(r), err)
	}
	if p.ID != PaymentIDOf(r) || p.Owner == "" || p.Amount < 1 || p.Currency == "" {
		return Payment{}, fmt.Errorf("the record of payment %s has the image of %q over %d %q, of the owner %q", PaymentIDOf(r), p.ID, p.Amount, p.Currency, p.Owner)
	}
	return p, nil
}
