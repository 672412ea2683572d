package ledger

import (
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// IsNewPayment reports whether a stream record of the table of payments is the insertion of
// a payment. The stream also has records of refunds, which are items of the same table, and
// of payments that were updated by a refund.
//
// The stream does not keep the records of one transaction together, so IsNewPayment looks
// only at the one record.
func IsNewPayment(r events.DynamoDBEventRecord) bool {
	return events.DynamoDBOperationType(r.EventName) == events.DynamoDBOperationTypeInsert && IsPaymentID(PaymentIDOf(r))
}

// PaymentIDOf returns the ID of the item that the stream record is about.
func PaymentIDOf(r events.DynamoDBEventRecord) string { return r.Change.Keys["id"].String() }

// lasting are the attributes of a payment that never change.
var lasting = []string{"id", "owner", "amount", "currency", "reference", "created_at"}

// AsMade returns the stream record with only those attributes of the payment that never
// change. An operator who builds a stream record from the table's item, even after a refund,
// therefore gets the same payload as the original record, and the guard recognizes it.
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

// PaymentOf returns the payment in a stream record. The stream's view type must be NEW_IMAGE
// or NEW_AND_OLD_IMAGES.
func PaymentOf(r events.DynamoDBEventRecord) (Payment, error) {
	item := make(map[string]types.AttributeValue, len(r.Change.NewImage))
	for name, v := range r.Change.NewImage {
		switch v.DataType() {
		case events.DataTypeString:
			item[name] = &types.AttributeValueMemberS{Value: v.String()}
		case events.DataTypeNumber:
			item[name] = &types.AttributeValueMemberN{Value: v.Number()}
		default: // a payment has only strings and numbers
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
