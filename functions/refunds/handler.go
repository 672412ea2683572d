package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/caller"
	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handler struct {
	payments ledger.Table
}

// refund is what a client is shown.
type refund struct {
	ID        string `json:"id"`
	PaymentID string `json:"paymentId"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Left      int64  `json:"left"` // what can still be refunded
}

// create makes a refund. That it runs once for all retries of a request is the
// guard's work; where an attempt died after its write, the next one finds the
// refund there, since its ID comes from the record (see payments' create).
//
// What it rejects is stored and replayed like a success (X1): a refund that was
// refused stays refused under its key, even if it would fit later.
func (h handler) create(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	owner, ok := caller.Of(e.RequestContext)
	if !ok {
		return answer{}, lambdaidem.Reject(http.StatusForbidden, "caller_unknown", "The token names no issuer or subject.")
	}
	amount, err := parseAmount(e)
	if err != nil {
		return answer{}, lambdaidem.Reject(http.StatusBadRequest, "refund_invalid", err.Error())
	}
	id := e.PathParameters["id"]
	if !ledger.IsPaymentID(id) {
		return answer{}, errNotFound
	}
	r := ledger.Refund{ID: ledger.RefundID(lambdaidem.RecordID(ctx)), PaymentID: id, Owner: owner, Amount: amount}
	p, err := h.payments.Refund(ctx, r)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return answer{}, errNotFound
	case errors.Is(err, ledger.ErrExceedsRest):
		return answer{}, lambdaidem.Reject(http.StatusConflict, "refund_exceeds_rest",
			fmt.Sprintf("amount: %d is more than the %d that is left to refund", amount, p.Refundable))
	case errors.Is(err, ledger.ErrTooManyRefunds):
		return answer{}, lambdaidem.Reject(http.StatusConflict, "too_many_refunds",
			fmt.Sprintf("This payment has had %d refunds, and can have no more.", ledger.MaxRefunds))
	case errors.Is(err, ledger.ErrOtherRefund): // the key was used before, longer ago than records live
		return answer{}, lambdaidem.Reject(http.StatusConflict, "key_used",
			"This idempotency key was used for another refund. Send a new key with a new refund.")
	case err != nil:
		// The write may have happened, or may still be on its way: the lease is
		// kept, so that nothing runs before it is over (X2).
		return answer{}, lambdaidem.Uncertain(err)
	}
	return created(refund{ID: r.ID, PaymentID: id, Amount: amount, Currency: p.Currency, Left: p.Refundable})
}

type answer = events.APIGatewayV2HTTPResponse

// errNotFound covers another owner's payment too.
var errNotFound = lambdaidem.Reject(http.StatusNotFound, "payment_not_found", "You have no payment with this id.")

// parseAmount reads and checks the body. Its errors are sentences for the
// client that begin with the field's name.
func parseAmount(e events.APIGatewayV2HTTPRequest) (int64, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return 0, errors.New("the body is marked as base64 and is not")
		}
	}
	var in struct {
		Amount *int64 `json:"amount"`
	}
	if err := jsonbody.Decode(body, &in); err != nil {
		return 0, err
	}
	switch {
	case in.Amount == nil:
		return 0, errors.New("amount: is missing")
	case *in.Amount < 1 || *in.Amount > ledger.MaxAmount:
		return 0, fmt.Errorf("amount: must be 1 to %d, in minor units", int64(ledger.MaxAmount))
	}
	return *in.Amount, nil
}

func created(r refund) (answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return answer{}, fmt.Errorf("encode refund %s: %w", r.ID, err)
	}
	return answer{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, nil
}
