package main

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/caller"
	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/functions/internal/order"
)

// application is a net/http application, which knows nothing of Lambda or keys.
type application struct {
	payments ledger.Payments
	accounts ledger.Accounts
}

func newApplication(payments ledger.Payments, accounts ledger.Accounts, health http.Handler) http.Handler {
	a := application{payments, accounts}
	mux := http.NewServeMux()
	mux.Handle("GET /health", health)
	mux.HandleFunc("POST /payments", a.create)
	mux.HandleFunc("GET /payments/{id}", a.show)
	return mux
}

// create makes a payment. It enlists its writes instead of making them. After create has
// returned, the guard commits the payment, the debit and the response, which it stores for
// retries, in one transaction. So the money moves exactly once, whatever crashes or is lost.
// If the condition of the debit fails, nothing is written, and the client gets the answer that
// Debit has set for that case.
func (a application) create(w http.ResponseWriter, r *http.Request) {
	owner, ok := ownerOf(w, r)
	if !ok {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		problem{http.StatusBadRequest, "request_invalid", "The body could not be read to its end."}.write(w)
		return
	}
	asked, err := parseOrder(body)
	if err != nil {
		problem{http.StatusBadRequest, "payment_invalid", err.Error()}.write(w)
		return
	}
	p := ledger.Payment{
		ID:         ledger.NewPaymentID(),
		Owner:      owner,
		Amount:     asked.Amount,
		Currency:   asked.Currency,
		Reference:  asked.Reference,
		CreatedAt:  time.Now().UTC().Format(time.RFC3339Nano),
		Refundable: asked.Amount,
	}
	tx := dynamostore.Enlist(r.Context())
	a.payments.Add(tx, p)
	a.accounts.Debit(tx, owner, p.Currency, p.Amount)

	w.Header().Set("Location", "/payments/"+p.ID)
	writeJSON(w, http.StatusCreated, "application/json", p)
}

func parseOrder(body []byte) (order.Order, error) {
	var in order.Fields
	if err := jsonbody.Decode(body, &in); err != nil {
		return order.Order{}, err
	}
	return in.Order()
}

// show answers with a payment of the caller. The guard runs it unguarded, because it is a GET
// and changes nothing.
func (a application) show(w http.ResponseWriter, r *http.Request) {
	owner, ok := ownerOf(w, r)
	if !ok {
		return
	}
	p, err := a.payments.Get(r.Context(), owner, r.PathValue("id"))
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		paymentNotFound.write(w)
	case err != nil:
		slog.ErrorContext(r.Context(), "a payment can't be read", "error", err)
		problem{http.StatusServiceUnavailable, "payments_unavailable", "Payments can't be read now. Repeat the request later."}.write(w)
	default:
		writeJSON(w, http.StatusOK, "application/json", p)
	}
}

var paymentNotFound = problem{http.StatusNotFound, "payment_not_found", "You have no payment with this id."}

// ownerOf returns the caller of the request, which becomes the owner of the payment. If the
// caller can't be identified, ownerOf answers 403 and returns false.
func ownerOf(w http.ResponseWriter, r *http.Request) (string, bool) {
	rc, _ := core.GetAPIGatewayV2ContextFromContext(r.Context())
	owner, ok := caller.Of(rc)
	if !ok {
		problem{http.StatusForbidden, "caller_unknown", "The token names no issuer or subject."}.write(w)
	}
	return owner, ok
}

func writeJSON(w http.ResponseWriter, status int, mediaType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // can't happen: v has only strings and numbers
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // writing to the adapter's buffer can't fail
}
