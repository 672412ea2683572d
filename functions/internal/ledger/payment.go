// Package ledger keeps payments in a DynamoDB table. It is the one place that
// knows what an item of that table looks like.
package ledger

import (
	"crypto/rand"
	"regexp"
)

// Payment is one payment: an item of the table, and what a client is shown.
type Payment struct {
	ID         string `dynamodbav:"id" json:"id"`
	Owner      string `dynamodbav:"owner" json:"-"` // see package caller
	Amount     int64  `dynamodbav:"amount" json:"amount"`
	Currency   string `dynamodbav:"currency" json:"currency"` // ISO 4217
	Reference  string `dynamodbav:"reference,omitempty" json:"reference,omitempty"`
	CreatedAt  string `dynamodbav:"created_at" json:"createdAt"` // RFC 3339
	Refundable int64  `dynamodbav:"refundable" json:"refundable"`

	// Refunds are the amounts refunded, by the refund's ID.
	Refunds map[string]int64 `dynamodbav:"refunds" json:"-"`
}

// MaxAmount is the largest amount in minor units (cents, say): 2^53-1, beyond
// which readers of JSON that use floating point begin to round.
const MaxAmount = 1<<53 - 1

// NewPaymentID returns an ID that nobody can guess: 130 random bits.
func NewPaymentID() string { return "pay_" + rand.Text() }

// NewRefundID returns an ID like [NewPaymentID]'s.
func NewRefundID() string { return "ref_" + rand.Text() }

var paymentID = regexp.MustCompile(`^pay_[A-Z2-7]{26}$`)

// IsPaymentID tells whether a payment could have this ID. What a client puts
// into a path is not sent to the table before it passes.
func IsPaymentID(id string) bool { return paymentID.MatchString(id) }
