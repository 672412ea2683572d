// Package notification defines the message about a payment that the receipts function sends
// to the notifications function over a queue.
package notification

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// Notification tells the consumer that a payment was made, and whom to notify.
//
// It contains only data of the payment: no time of sending and no random value. After a
// crash, the sender sends it again with the same key, and it must be the same message then,
// because the consumer refuses a different message with that key.
type Notification struct {
	PaymentID string `json:"payment"`
	To        string `json:"to"`     // the owner of the payment
	Amount    int64  `json:"amount"` // minor units, such as cents
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	PaidAt    string `json:"paidAt"` // RFC 3339
}

// Of returns the notification of a payment.
func Of(p ledger.Payment) Notification {
	return Notification{PaymentID: p.ID, To: p.Owner, Amount: p.Amount, Currency: p.Currency, Reference: p.Reference, PaidAt: p.CreatedAt}
}

// Parse decodes the body of a message. It returns an error if the body is not a valid
// notification. Package jsonbody decodes it, so unknown or repeated members are errors too.
//
// Deploy the consumer before the sender when you add a member. A consumer that does not know
// the member refuses the message, and the queue delivers it again.
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

// Body returns the notification as JSON for the body of a message. The JSON contains no
// character that SQS refuses (Amazon SQS API Reference, "SendMessage"). encoding/json escapes
// control characters and replaces invalid UTF-8. Body escapes U+FFFE and U+FFFF.
func (n Notification) Body() (string, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode the notification of payment %s: %w", n.PaymentID, err)
	}
	return noncharacters.Replace(string(text)), nil
}

// noncharacters escapes U+FFFE and U+FFFF, which can occur only inside JSON strings.
var noncharacters = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)
