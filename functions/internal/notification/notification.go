// Package notification is what one function tells another about a payment, over a
// queue: the message that both have to agree on.
package notification

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// Notification says that a payment was made, and who is to hear of it.
//
// It has only what the payment says itself: no time of sending, nothing made up.
// Whoever sends it sends it again after a crash, under the same key, and it must be
// the same message then: the consumer refuses another one under that key.
type Notification struct {
	PaymentID string `json:"payment"`
	To        string `json:"to"` // the payment's owner
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	PaidAt    string `json:"paidAt"` // RFC 3339
}

// Of returns the notification of a payment.
func Of(p ledger.Payment) Notification {
	return Notification{PaymentID: p.ID, To: p.Owner, Amount: p.Amount, Currency: p.Currency, Reference: p.Reference, PaidAt: p.CreatedAt}
}

// Parse reads a message's body, which must be a JSON object with these members alone,
// each once and in this case. What is no notification is an error.
//
// It is as strict as a request's reader (package jsonbody), because readers disagree
// about all else, and one of them mails. A member that is added one day is refused by a
// consumer that is not deployed yet: the message then comes again.
func Parse(body string) (Notification, error) {
	var n Notification
	if err := jsonbody.Decode([]byte(body), &n); err != nil {
		return Notification{}, fmt.Errorf("the message is no notification: %w", err)
	}
	if !ledger.IsPaymentID(n.PaymentID) || n.To == "" || n.Amount < 1 || n.Amount > ledger.MaxAmount || n.Currency == "" {
		return Notification{}, fmt.Errorf("the message is no notification: of payment %q, over %d %q, to %q", n.PaymentID, n.Amount, n.Currency, n.To)
	}
	return n, nil
}

// Body returns the notification as the body of a message. It has no character that SQS
// refuses (Amazon SQS API Reference, "SendMessage"): encoding/json escapes control
// characters and replaces what is no UTF-8, and the two noncharacters are escaped here.
func (n Notification) Body() (string, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode the notification of payment %s: %w", n.PaymentID, err)
	}
	return noncharacters.Replace(string(text)), nil
}

// noncharacters escapes what can be within JSON strings alone.
var noncharacters = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)
