// Package ledger stores accounts, payments, transfers and receipts in DynamoDB tables. No
// other package knows the attributes of their items.
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

// Payment is a payment, as an item of the table and as JSON for the client.
type Payment struct {
	ID         string `dynamodbav:"id" json:"id"`
	Owner      string `dynamodbav:"owner" json:"-"`           // as caller.Of returns it
	Amount     int64  `dynamodbav:"amount" json:"amount"`     // minor units, such as cents
	Currency   string `dynamodbav:"currency" json:"currency"` // ISO 4217
	Reference  string `dynamodbav:"reference" json:"reference,omitempty"`
	CreatedAt  string `dynamodbav:"created_at" json:"createdAt"`  // RFC 3339
	Refundable int64  `dynamodbav:"refundable" json:"refundable"` // the rest of the amount that can still be refunded
}

// Refund is a refund, as an item of the table of payments and as JSON for the client.
type Refund struct {
	ID        string `dynamodbav:"id" json:"id"`
	PaymentID string `dynamodbav:"payment_id" json:"paymentId"`
	Amount    int64  `dynamodbav:"amount" json:"amount"`
	Currency  string `dynamodbav:"currency" json:"currency"`
	Left      int64  `dynamodbav:"left" json:"left"` // Payment.Refundable after this refund
}

// MaxAmount is the largest amount, in minor units such as cents: 2^53-1. JSON readers that
// use floating point round larger integers.
const MaxAmount = 1<<53 - 1

// NewPaymentID returns a new ID of 130 random bits. Each run of a handler makes another ID.
// The payment has the ID of the run whose writes were committed.
func NewPaymentID() string { return "pay_" + rand.Text() }

// NewRefundID returns a new ID, like [NewPaymentID].
func NewRefundID() string { return "ref_" + rand.Text() }

var paymentID = regexp.MustCompile(`^pay_[A-Z2-7]{26}$`)

// IsPaymentID reports whether id has the form of a payment's ID. An ID from a client's path
// is used in a request to the table only if it has this form.
func IsPaymentID(id string) bool { return paymentID.MatchString(id) }

// Payments is the table of payments and refunds.
type Payments struct {
	API  API
	Name string
}

// API is the part of *dynamodb.Client that Payments uses to read.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// ErrNotFound means that the payment does not exist or belongs to another owner. The error
// is the same for both, so that a client can't find out which IDs exist.
var ErrNotFound = errors.New("no such payment")

// Get returns a payment of this owner. The read is consistent, so it finds a payment that
// has just been committed. If the owner has no such payment, the error is [ErrNotFound].
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

// Refund enlists the refund r of the payment p, and reduces what can still be refunded. The
// condition compares Refundable with the value in p. If another refund was committed after p
// was read, nothing is written. The client then gets a 503 and may repeat the request.
func (t Payments) Refund(tx *dynamostore.Tx, p Payment, r Refund) {
	tx.PutValue("refund", t.Name, r)
	tx.UpdateValue("payment", t.Name, itemID{p.ID}, "SET refundable = :left", dynamostore.Args{":left": r.Left}).
		If("refundable = :seen", dynamostore.Args{":seen": p.Refundable}).
		Else(lambdaidem.Retryable(lambdaidem.Reject(http.StatusServiceUnavailable, "payment_changed",
			"Another refund of this payment came between. Repeat the request with the same key.")))
}

// itemID is the key of an item in any of the tables.
type itemID struct {
	ID string `dynamodbav:"id"`
}
