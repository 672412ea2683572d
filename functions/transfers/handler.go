package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/caller"
	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/functions/internal/order"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

type handler struct {
	reserving *lambdaidem.Guard
	transfers ledger.Transfers
	accounts  ledger.Accounts
	clearing  clearing
	at        func(context.Context, events.APIGatewayV2HTTPRequest, point) // see demo.go
}

func newHandler(guard *lambdaidem.Guard, transfers ledger.Transfers, accounts ledger.Accounts, house clearing) handler {
	return handler{
		// A reservation has no effects but enlisted writes, so it needs no lock: one
		// transaction is all of it.
		reserving: guard.With(func(o *lambdaidem.Options) { o.Optimistic = true }),
		transfers: transfers, accounts: accounts, clearing: house,
		at: func(context.Context, events.APIGatewayV2HTTPRequest, point) {},
	}
}

type request struct {
	order.Order

	To string `json:"to"` // the recipient, as their token's sub has it
}

// create moves money from the caller's account to another one, and has the
// clearing house told.
//
// The clearing house is outside: it can't be part of a transaction, and what it
// did can't be undone. So whatever can refuse the transfer must have its say
// before the call, and nothing may refuse it afterwards. A condition on the
// balance in the last transaction would come too late: the answer would be 402,
// and the transfer cleared. Hence three parts, each safe to repeat:
//
//  1. reserve takes the money out of the account, in a transaction. All conditions
//     are there. From here on the money is the transfer's.
//  2. clear calls the clearing house, with a key that is the same in every attempt
//     , so that it clears once, however often it is called.
//  3. The money goes to the recipient, or back if the clearing house refuses, in
//     one transaction with the answer.
//
// An account can be closed between parts 1 and 3. The writes of part 3 have conditions,
// but no Else, so a failed condition is not stored as the answer: the attempt fails with
// a 500, the transfer stays reserved, and a retry ends the transfer once the account
// exists again. The 500 counts towards ApiServerErrorsAlarm, and the guard logs which
// write failed.
//
// Whichever line an attempt dies at, the next one passes the parts that are done:
// steps keep what they returned, and a part that died before its step was
// kept finds its own effect when it is repeated. It ends like the first would have.
// If no retry ever comes, a reserved transfer stays, with its money in it: look for
// those that are old, and repeat the request or give the money back.
func (h handler) create(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	owner, ok := caller.Of(e.RequestContext)
	if !ok {
		return answer{}, lambdaidem.Reject(http.StatusForbidden, "caller_unknown", "The token names no issuer or subject.")
	}
	asked, err := parse(e, owner)
	if err != nil {
		return answer{}, lambdaidem.Reject(http.StatusBadRequest, "transfer_invalid", err.Error())
	}
	t, err := lambdaidem.Step(ctx, "reserve", func(ctx context.Context) (ledger.Transfer, error) {
		return h.reserve(ctx, owner, asked)
	})
	if refusal := ledger.Refusal(err); refusal != nil {
		return answer{}, refusal
	}
	if err != nil {
		return answer{}, err
	}
	h.at(ctx, e, reserved)
	ruling, err := lambdaidem.Step(ctx, "clear", func(ctx context.Context) (ruling, error) {
		said, err := h.clearing.clear(ctx, lambdaidem.DownstreamKey(ctx, "clear"), t)
		h.at(ctx, e, cleared)
		return said, err
	})
	if err != nil {
		slog.WarnContext(ctx, "a transfer is reserved, and not known to be cleared", "transfer", t.ID, "error", err)
		// Released, though the call may have had its effect: the next attempt makes
		// the same call with the same key.
		return answer{}, lambdaidem.Reject(http.StatusServiceUnavailable, "clearing_unavailable",
			"The clearing house gave no answer. Repeat the request with the same key.")
	}

	tx := dynamostore.Enlist(ctx)
	defer h.at(ctx, e, ending)
	if ruling.Refused != "" {
		tx.AlsoWhenFailed() // the money goes back with the refusal
		h.transfers.End(tx, t, ledger.Refused)
		h.accounts.Credit(tx, t.From, t.Currency, t.Amount)
		return answer{}, lambdaidem.Reject(http.StatusUnprocessableEntity, "transfer_refused", "The transfer was refused: "+ruling.Refused+".")
	}
	h.transfers.End(tx, t, ledger.Done)
	h.accounts.Credit(tx, t.To, t.Currency, t.Amount)
	return created(t, asked)
}

// reserve takes the money out of the caller's account, into a new transfer. It is
// a call of its own with a record of its own, so that it happens once for all
// attempts at the request: also where one died right after it, and where one that
// was given up for dead wakes and does it late. Its payload is part of it, since a
// released request without steps may come again with another one.
//
// The record has a principal, because its answer names the customer: a purge by
// caller erases it too.
func (h handler) reserve(ctx context.Context, owner string, asked request) (ledger.Transfer, error) {
	call := lambdaidem.Call{Operation: "reserve", Key: lambdaidem.RecordID(ctx), Principal: principal(owner), Payload: asked}
	return lambdaidem.Do(ctx, h.reserving, call, func(ctx context.Context) (ledger.Transfer, error) {
		t := ledger.Transfer{
			ID:        ledger.NewTransferID(),
			From:      owner,
			To:        peer(owner, asked.To),
			Amount:    asked.Amount,
			Currency:  asked.Currency,
			Reference: asked.Reference,
			CreatedAt: time.Now().UTC().Format(time.RFC3339Nano),
			Status:    ledger.Reserved,
		}
		tx := dynamostore.Enlist(ctx)
		h.accounts.Debit(tx, t.From, t.Currency, t.Amount)
		h.accounts.CheckRecipient(tx, t.To, t.Currency)
		h.transfers.Add(tx, t)
		return t, nil
	})
}

// principal returns the caller as the guard around the handler names it in scopes.
func principal(owner string) string {
	issuer, subject, ok := strings.Cut(owner, " ")
	if !ok {
		return ""
	}
	return lambdaidem.PrincipalOf("jwt", issuer, subject)
}

// peer is whom the owner calls so: a subject of the same issuer.
func peer(owner, subject string) string {
	issuer, _, _ := strings.Cut(owner, " ")
	return issuer + " " + subject
}

// maxRecipient is the longest recipient, in bytes: OpenID Connect's bound for a
// sub.
const maxRecipient = 255

// parse reads and checks the body. Its errors are sentences for the client that
// begin with the field's name.
func parse(e events.APIGatewayV2HTTPRequest, owner string) (request, error) {
	var in struct {
		order.Fields

		To *string `json:"to"`
	}
	if err := jsonbody.DecodeEvent(e, &in); err != nil {
		return request{}, err
	}
	asked, err := in.Order()
	switch {
	case err != nil:
		return request{}, err
	case in.To == nil:
		return request{}, errors.New("to: is missing")
	case *in.To == "" || len(*in.To) > maxRecipient:
		return request{}, fmt.Errorf("to: must have 1 to %d bytes", maxRecipient)
	case peer(owner, *in.To) == owner:
		return request{}, errors.New("to: must be somebody else")
	}
	return request{asked, *in.To}, nil
}

type answer = events.APIGatewayV2HTTPResponse

func created(t ledger.Transfer, asked request) (answer, error) {
	body, err := json.Marshal(struct {
		ID string `json:"id"`
		request

		CreatedAt string `json:"createdAt"`
	}{t.ID, asked, t.CreatedAt})
	if err != nil {
		return answer{}, fmt.Errorf("encode transfer %s: %w", t.ID, err)
	}
	return answer{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}, nil
}
