package ledger

import (
	"strings"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// Receipt is what a payer is given for a payment: an item of a table.
type Receipt struct {
	ID        string `dynamodbav:"id"`
	PaymentID string `dynamodbav:"payment_id"`
	Owner     string `dynamodbav:"owner"` // the payment's
	Amount    int64  `dynamodbav:"amount"`
	Currency  string `dynamodbav:"currency"` // ISO 4217
	PaidAt    string `dynamodbav:"paid_at"`  // RFC 3339
	WrittenAt string `dynamodbav:"written_at"`
}

// ReceiptID returns the ID of the receipt of a payment: "rec_" and the payment's random
// bits. A payment has one, whoever writes it and however often.
func ReceiptID(paymentID string) string { return "rec_" + strings.TrimPrefix(paymentID, "pay_") }

// Receipts is the name of the table of receipts.
type Receipts string

// Add enlists a receipt.
//
// There is no condition that it must be new. The idempotency record sees to that for
// as long as it lives; after it, or when it is lost, the receipt is written over by one
// that says the same of the payment. A condition would fail there, each time the record
// of the stream comes, and so hold up all behind it.
func (t Receipts) Add(tx *dynamostore.Tx, r Receipt) { tx.PutValue("receipt", string(t), r) }
