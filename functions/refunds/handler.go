package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/caller"
	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handler struct {
	payments ledger.Payments
	accounts ledger.Accounts
}

// create makes a refund. It reads the payment and enlists its writes, which the guard commits
// in one transaction with the answer. The payment may have changed between the read and the
// transaction. The transaction therefore has a condition on the amount that was read, so that
// two refunds can't take the same money.
//
// A rejection is stored and replayed like a success. A refund that was rejected stays rejected
// under its key, even if it would be possible later.
func (h handler) create(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	owner, ok := caller.Of(e.RequestContext)
	if !ok {
		return answer{}, lambdaidem.Reject(http.StatusForbidden, "caller_unknown", "The token names no issuer or subject.")
	}
	amount, err := parseAmount(e)
	if err != nil {
		return answer{}, lambdaidem.Reject(http.StatusBadRequest, "refund_invalid", err.Error())
	}
	p, err := h.payments.Get(ctx, owner, e.PathParameters["id"])
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return answer{}, lambdaidem.Reject(http.StatusNotFound, "payment_not_found", "You have no payment with this id.")
	case err != nil:
		return answer{}, lambdaidem.Retryable(err) // the handler has had no effect
	case amount > p.Refundable:
		return answer{}, lambdaidem.Reject(http.StatusConflict, "refund_exceeds_rest",
			fmt.Sprintf("amount: %d is more than the %d that is left to refund", amount, p.Refundable))
	}
	r := ledger.Refund{ID: ledger.NewRefundID(), PaymentID: p.ID, Amount: amount, Currency: p.Currency, Left: p.Refundable - amount}
	tx := dynamostore.Enlist(ctx)
	h.payments.Refund(tx, p, r)
	h.accounts.Credit(tx, owner, p.Currency, amount).Else(ledger.ErrNoAccount)
	return created(r)
}

type answer = events.APIGatewayV2HTTPResponse

// parseAmount decodes and checks the body. The text of an error begins with the field's name
// and is sent to the client.
func parseAmount(e events.APIGatewayV2HTTPRequest) (int64, error) {
	var in struct {
		Amount *int64 `json:"amount"`
	}
	if err := jsonbody.DecodeEvent(e, &in); err != nil {
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

func created(r ledger.Refund) (answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return answer{}, fmt.Errorf("encode refund %s: %w", r.ID, err)
	}
	return answer{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, nil
}
