package ledger

import (
	"strings"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Receipt confirms a payment to its payer. It is an item of the table of receipts.
type Receipt struct {
	ID        string `dynamodbav:"id"`
	PaymentID string `dynamodbav:"payment_id"`
	Owner     string `dynamodbav:"owner"` // the payment's owner
	Amount    int64  `dynamodbav:"amount"`
	Currency  string `dynamodbav:"currency"`   // ISO 4217
	PaidAt    string `dynamodbav:"paid_at"`    // RFC 3339
	WrittenAt string `dynamodbav:"written_at"` // RFC 3339
}

// ReceiptID returns the ID of the receipt of a payment: "rec_" and the random part of the
// payment's ID. All writes of the receipt of one payment therefore have the same key.
func ReceiptID(paymentID string) string { return "rec_" + strings.TrimPrefix(paymentID, "pay_") }

// Receipts is the name of the table of receipts.
type Receipts string

// Add enlists a receipt.
//
// The write has no condition that the receipt is new. While the idempotency record exists,
// the guard prevents a second write. After that, a second write only replaces the receipt by
// one with the same content, except WrittenAt. A condition would fail each time, and the
// failing stream record would block the records behind it.
func (t Receipts) Add(tx *dynamostore.Tx, r Receipt) { tx.PutValue("receipt", string(t), r) }
