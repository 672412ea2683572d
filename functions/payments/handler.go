package main

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/lambdaidem/toolkit/functions/internal/caller"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// application is an ordinary net/http application.
type application struct {
	payments ledger.Table
}

func newApplication(payments ledger.Table) http.Handler {
	a := application{payments}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", a.create)
	mux.HandleFunc("GET /payments/{id}", a.show)
	return mux
}

// create makes a payment. That it runs once for all retries of a request is the
// guard's work.
//
// Where an attempt dies between the write below and its answer, the guard's
// default policy runs create again once the dead attempt's lease is over: an
// effect outside the idempotency record is made at least once (G2). So the
// payment's ID comes from the record, and the second write finds the first.
// Where an effect can't be made safe to repeat like this, Options.Policy can be
// lambdaidem.Hold.
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
	order, err := parseOrder(body)
	if err != nil {
		problem{http.StatusBadRequest, "payment_invalid", err.Error()}.write(w)
		return
	}
	p := ledger.Payment{
		ID:         ledger.PaymentID(lambdaidem.RecordID(r.Context())),
		Owner:      owner,
		Amount:     order.Amount,
		Currency:   order.Currency,
		Reference:  order.Reference,
		CreatedAt:  time.Now().UTC().Format(time.RFC3339Nano),
		Refundable: order.Amount,
		Refunds:    map[string]int64{},
	}
	p, err = a.payments.Pay(r.Context(), p)
	if errors.Is(err, ledger.ErrOtherPayment) { // the key was used before, longer ago than records live
		problem{http.StatusConflict, "key_used", "This idempotency key was used for another payment. Send a new key with a new payment."}.write(w)
		return
	}
	if err != nil {
		slog.ErrorContext(r.Context(), "a payment's fate is unknown", "error", err)
		problem{http.StatusGatewayTimeout, "payment_unknown", "It is not known whether the payment was made. Repeat the request with the same key later."}.write(w)
		return
	}
	w.Header().Set("Location", "/payments/"+p.ID)
	writeJSON(w, http.StatusCreated, "application/json", p)
}

// show answers with a payment of the caller's own. It is a GET, which the
// guard lets pass (K4).
func (a application) show(w http.ResponseWriter, r *http.Request) {
	owner, ok := ownerOf(w, r)
	if !ok {
		return
	}
	id := r.PathValue("id")
	if !ledger.IsPaymentID(id) {
		paymentNotFound.write(w)
		return
	}
	p, err := a.payments.Get(r.Context(), owner, id)
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

// ownerOf tells whose request it is, or answers it if that can't be told.
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
		panic(err) // strings and numbers: can't happen
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // into the adapter's buffer, which takes everything
}
