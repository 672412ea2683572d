// Package ledger keeps payments in a DynamoDB table. It is the one place that
// knows what an item of that table looks like.
package ledger

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"regexp"
)

// Payment is one payment: an item of the table, and what a client is shown.
type Payment struct {
	ID         string `dynamodbav:"id" json:"id"`
	Owner      string `dynamodbav:"owner" json:"-"` // see package caller
	Amount     int64  `dynamodbav:"amount" json:"amount"`
	Currency   string `dynamodbav:"currency" json:"currency"` // ISO 4217
	Reference  string `dynamodbav:"reference" json:"reference,omitempty"`
	CreatedAt  string `dynamodbav:"created_at" json:"createdAt"` // RFC 3339
	Refundable int64  `dynamodbav:"refundable" json:"refundable"`

	// Runs has a name for each run of the handler that asked for this payment:
	// more than one where an attempt died and the next one ran again.
	Runs []string `dynamodbav:"runs,stringset,omitempty" json:"-"`

	// Refunds are the amounts refunded, by the refund's ID.
	Refunds map[string]int64 `dynamodbav:"refunds" json:"-"`
}

// MaxAmount is the largest amount in minor units (cents, say): 2^53-1, beyond
// which readers of JSON that use floating point begin to round.
const MaxAmount = 1<<53 - 1

// PaymentID is the ID of the payment that a request asks for: the same in every
// attempt at it, so that an attempt that runs again makes no second payment.
// record is lambdaidem.RecordID of the handler's context; where there is none,
// each ID is a new one. The prefix and 130 bits of a hash, or of chance.
func PaymentID(record string) string { return derived("pay_", record) }

// RefundID is the ID of the refund that a request asks for, like [PaymentID].
func RefundID(record string) string { return derived("ref_", record) }

func derived(prefix, record string) string {
	if record == "" {
		return prefix + rand.Text()
	}
	sum := sha256.Sum256([]byte(prefix + record))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:26]
}

var paymentID = regexp.MustCompile(`^pay_[A-Z2-7]{26}$`)

// IsPaymentID tells whether a payment could have this ID. What a client puts
// into a path is not sent to the table before it passes.
func IsPaymentID(id string) bool { return paymentID.MatchString(id) }
