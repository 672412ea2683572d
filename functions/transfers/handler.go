package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/caller"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

type handler struct {
	reserving *lambdaidem.Guard // guards the reservation
	transfers ledger.Transfers
	accounts  ledger.Accounts
	clearing  clearing
	at        func(context.Context, events.APIGatewayV2HTTPRequest, point) // called at each point; crashes if a demonstration asks for it
}

func newHandler(guard *lambdaidem.Guard, transfers ledger.Transfers, accounts ledger.Accounts, house clearing) handler {
	return handler{
		// The only effects of a reservation are enlisted writes, so it needs no lease: one
		// transaction commits the writes and its record.
		reserving: guard.With(func(o *lambdaidem.Options) { o.Optimistic = true }),
		transfers: transfers, accounts: accounts, clearing: house,
		at: func(context.Context, events.APIGatewayV2HTTPRequest, point) {},
	}
}

// create moves money from the caller's account to another account, with the approval of the
// clearing house.
//
// The clearing house is an outside service. It can't take part in a transaction, and a clearing
// can't be undone. So everything that can refuse the transfer must be checked before the call,
// and nothing may refuse it afterwards. A condition on the balance in the last transaction
// would be too late: the client would get 402 although the transfer was cleared. The handler
// therefore has three phases, and each is safe to repeat:
//
//  1. reserve takes the money out of the caller's account in a transaction, which checks all
//     conditions. From now on the money belongs to the transfer.
//  2. clear calls the clearing house, with a key that is the same in every attempt, so that
//     the transfer is cleared once, however often clear is called.
//  3. The money goes to the recipient, or back if the clearing house refuses, in one
//     transaction with the answer.
//
// An account can be closed between phases 1 and 3. The writes of phase 3 have conditions, but
// no Else, so a failed condition is not stored as the answer. The attempt fails with a 500,
// the transfer stays reserved, and a retry ends the transfer once the account exists again.
// The 500 counts towards ApiServerErrorsAlarm, and the guard logs which write failed.
//
// If an attempt dies, the next attempt skips the steps whose results are stored. If a step had
// its effect but its result was not stored, the step runs again, and returns the result of the
// first time because of its key. If no retry ever comes, the transfer stays reserved and keeps
// its money. Look for old reserved transfers, and repeat the request or give the money back.
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
		// Under policy Rerun, a 503 releases the record although the call may have had its
		// effect. That is safe, because the next attempt makes the same call with the same
		// key.
		return answer{}, lambdaidem.Reject(http.StatusServiceUnavailable, "clearing_unavailable",
			"The clearing house gave no answer. Repeat the request with the same key.")
	}

	tx := dynamostore.Enlist(ctx)
	defer h.at(ctx, e, ending)
	if ruling.Refused != "" {
		tx.AlsoWhenFailed() // commit the writes although the answer is an error: the money must go back
		h.transfers.End(tx, t, ledger.Refused)
		h.accounts.Credit(tx, t.From, t.Currency, t.Amount)
		return answer{}, lambdaidem.Reject(http.StatusUnprocessableEntity, "transfer_refused", "The transfer was refused: "+ruling.Refused+".")
	}
	h.transfers.End(tx, t, ledger.Done)
	h.accounts.Credit(tx, t.To, t.Currency, t.Amount)
	return created(t, asked)
}

// reserve takes the money out of the caller's account and adds a new transfer, which holds it.
//
// The reservation is a guarded call with a record of its own, so that it happens once for all
// attempts of the request. This holds if an attempt dies right after the reservation, and if
// an attempt that was taken for dead continues and reserves late. The call has a payload,
// because a released request without steps may be repeated with another payload.
//
// The call has a principal, so that a purge of the caller's records also erases this record,
// whose answer names the customer.
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

// principal returns the name that the guard around the handler gives the caller in the scopes
// of records.
func principal(owner string) string {
	issuer, subject, ok := strings.Cut(owner, " ")
	if !ok {
		return ""
	}
	return lambdaidem.PrincipalOf("jwt", issuer, subject)
}

// peer returns the customer with this subject and the same issuer as owner.
func peer(owner, subject string) string {
	issuer, _, _ := strings.Cut(owner, " ")
	return issuer + " " + subject
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
