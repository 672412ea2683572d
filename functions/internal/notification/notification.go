// Package notification is what one function tells another about a payment, over a
// queue: the message that both have to agree on.
package notification

import (
	"encoding/json"
	"fmt"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// Notification says that a payment was made, and who is to hear of it.
//
// It has only what the payment says itself: no time of sending, nothing made up.
// Whoever sends it sends it again after a crash, under the same key, and it must be
// the same message then: the consumer refuses another one under that key (F5).
type Notification struct {
	PaymentID string `json:"payment"`
	To        string `json:"to"` // the payment's owner
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	PaidAt    string `json:"paidAt"` // RFC 3339
}

// Of is the notification of a payment.
func Of(p ledger.Payment) Notification {
	return Notification{PaymentID: p.ID, To: p.Owner, Amount: p.Amount, Currency: p.Currency, Reference: p.Reference, PaidAt: p.CreatedAt}
}

// Parse reads a message's body. What is no notification is an error.
func Parse(body string) (Notification, error) {
	var n Notification
	if err := json.Unmarshal([]byte(body), &n); err != nil {
		return Notification{}, fmt.Errorf("the message is no notification: %w", err)
	}
	if !ledger.IsPaymentID(n.PaymentID) || n.Amount < 1 {
		return Notification{}, fmt.Errorf("the message is no notification: of payment %q, over %d", n.PaymentID, n.Amount)
	}
	return n, nil
}

// Body is the notification as the body of a message.
func (n Notification) Body() (string, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode the notification of payment %s: %w", n.PaymentID, err)
	}
	return string(text), nil
}
