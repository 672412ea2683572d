// Package ledger keeps accounts, payments and transfers in DynamoDB tables. It is
// the one place that knows what their items look like.
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
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
}

// Refund is one refund: an item of the same table, and what a client is shown.
type Refund struct {
	ID        string `dynamodbav:"id" json:"id"`
	PaymentID string `dynamodbav:"payment_id" json:"paymentId"`
	Amount    int64  `dynamodbav:"amount" json:"amount"`
	Currency  string `dynamodbav:"currency" json:"currency"`
	Left      int64  `dynamodbav:"left" json:"left"` // what could still be refunded then
}

// MaxAmount is the largest amount in minor units (cents, say): 2^53-1, beyond
// which readers of JSON that use floating point begin to round.
const MaxAmount = 1<<53 - 1

// NewPaymentID makes up an ID of 130 random bits. Each run of a handler makes up
// one of its own, and that of the run whose writes are committed counts.
func NewPaymentID() string { return "pay_" + rand.Text() }

// NewRefundID makes up an ID, like [NewPaymentID].
func NewRefundID() string { return "ref_" + rand.Text() }

var paymentID = regexp.MustCompile(`^pay_[A-Z2-7]{26}$`)

// IsPaymentID reports whether a payment could have this ID. What a client puts
// into a path is not sent to the table before it passes.
func IsPaymentID(id string) bool { return paymentID.MatchString(id) }

// Payments is the table of payments and their refunds.
type Payments struct {
	API  API
	Name string
}

// API is what reading needs of a *dynamodb.Client.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// ErrNotFound says that there is no such payment, or that it is another
// owner's: the two look alike, so that nobody learns which IDs exist.
var ErrNotFound = errors.New("no such payment")

// Get reads a payment of this owner, consistently: who has just paid sees it.
// The error is [ErrNotFound] if there is none.
func (t Payments) Get(ctx context.Context, owner, id string) (Payment, error) {
	if !IsPaymentID(id) {
		return Payment{}, ErrNotFound
	}
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	out, err := t.API.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return Payment{}, fmt.Errorf("read payment %s: %w", id, err)
	}
	var p Payment
	if err := attributevalue.UnmarshalMap(out.Item, &p); err != nil {
		return Payment{}, fmt.Errorf("decode payment %s: %w", id, err)
	}
	if p.ID == "" || p.Owner != owner {
		return Payment{}, ErrNotFound
	}
	return p, nil
}

// Add enlists a new payment.
func (t Payments) Add(tx *dynamostore.Tx, p Payment) { tx.PutValue("payment", t.Name, p) }

// Refund enlists a refund of a payment that was read, and takes it from what is
// left. If another refund came between, what was read is not so any more: nothing
// is refunded, and the request is to be repeated.
func (t Payments) Refund(tx *dynamostore.Tx, p Payment, r Refund) {
	tx.PutValue("refund", t.Name, r)
	tx.UpdateValue("payment", t.Name, itemID{p.ID}, "SET refundable = :left", dynamostore.Args{":left": r.Left}).
		If("refundable = :seen", dynamostore.Args{":seen": p.Refundable}).
		Else(lambdaidem.Retryable(lambdaidem.Reject(http.StatusServiceUnavailable, "payment_changed",
			"Another refund of this payment came between. Repeat the request with the same key.")))
}

// itemID is the key of an item, in every table.
type itemID struct {
	ID string `dynamodbav:"id"`
}
