package ledger

import (
	"crypto/rand"

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

// NewReceiptID makes up an ID, like [NewPaymentID].
func NewReceiptID() string { return "rec_" + rand.Text() }

// Receipts is the name of the table of receipts.
type Receipts string

// Add enlists a new receipt.
func (t Receipts) Add(tx *dynamostore.Tx, r Receipt) { tx.PutValue("receipt", string(t), r) }
