package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// row is one line of the table: a request, the expected and the actual answer, and what is wrong
// with the answer.
type row struct {
	what, expected string
	got            string
	wrong          []string
}

// suite is one run against an API.
type suite struct {
	client     *client
	keys       string // prefix of all keys of this run
	transferTo string // the recipient's sub; if empty, transfers go to nobody and are refused

	rows []row
	paid int64 // the amount taken from the account so far, in minor units
}

// kind is a kind of request, with its variants.
type kind struct {
	name    string
	path    string
	body    string
	same    string // another JSON text of the same value as body
	other   string // a body that asks for something else
	status  int
	code    string // code of the problem document; empty for a success
	amount  int64  // amount that a success takes from the account
	another bool   // whether the suite repeats it with another key
}

// nobody has the form of a sub, but has no account.
const nobody = "00000000-nobody"

// ISO 4217 reserves the currency code XTS for tests.
var (
	payment = kind{name: "payment", path: "/payments", status: http.StatusCreated, amount: 1250, another: true,
		body:  `{"amount":1250,"currency":"EUR","reference":"twice"}`,
		same:  "{\n  \"reference\": \"twice\", \"currency\": \"EUR\", \"amount\": 1250 }",
		other: `{"amount":9999,"currency":"EUR","reference":"twice"}`}
	refusedPayment = kind{name: "refused payment", path: "/payments", status: http.StatusNotFound, code: "account_not_found",
		body:  `{"amount":1250,"currency":"XTS"}`,
		same:  `{ "currency": "XTS", "amount": 1250 }`,
		other: `{"amount":9999,"currency":"XTS"}`}
)

func refund(path string) kind {
	return kind{name: "refund", path: path + "/refunds", status: http.StatusCreated, amount: -400, another: true,
		body: `{"amount":400}`, same: `{ "amount": 400 }`, other: `{"amount":401}`}
}

func transfer(to string) kind {
	k := kind{name: "transfer", path: "/transfers", status: http.StatusCreated, amount: 500, another: true}
	if to == "" {
		k.name, k.status, k.code, k.amount, k.another = "refused transfer", http.StatusNotFound, "recipient_not_found", 0, false
		to = nobody
	}
	k.body = fmt.Sprintf(`{"to":%q,"amount":500,"currency":"EUR"}`, to)
	k.same = fmt.Sprintf(`{ "currency": "EUR", "amount": 500, "to": %q }`, to)
	k.other = fmt.Sprintf(`{"to":%q,"amount":501,"currency":"EUR"}`, to)
	return k
}

// add appends a row.
func (s *suite) add(what, expected string, got any, wrong []string) {
	s.rows = append(s.rows, row{what, expected, fmt.Sprint(got), wrong})
}

// run sends all requests. A wrong answer is recorded in its row, and the suite continues, because
// a complete table says more than the first error.
func (s *suite) run(ctx context.Context) {
	first := s.kind(ctx, payment)
	s.kind(ctx, refusedPayment)
	if path, ok := strings.CutPrefix(first.header.Get("Location"), "/payments/"); ok {
		s.unguarded(ctx, "/payments/"+path)
		s.kind(ctx, refund("/payments/"+path))
	} else {
		s.add("refund", "201", "not sent", []string{"the payment has no Location, so there is nothing to refund"})
	}
	s.kind(ctx, transfer(s.transferTo))
	s.atOnce(ctx)
	s.stranger(ctx)
}

// kind sends all variants of a kind of request, and returns the first answer.
func (s *suite) kind(ctx context.Context, k kind) answer {
	send := func(key, body string) answer {
		return s.client.send(ctx, request{path: k.path, key: key, body: body})
	}
	refused := func(what string, a answer, status int, code string) {
		s.add(k.name+", "+what, fmt.Sprint(status, " ", code), a, notFirst(a, status, code))
	}
	key := s.keys + "-" + strings.ReplaceAll(k.name, " ", "-")
	expected := strings.TrimSpace(fmt.Sprint(k.status, " ", k.code))

	first := send(key, k.body)
	s.add(k.name, expected, first, notFirst(first, k.status, k.code))
	s.count(first, k)
	repeat := func(what, body string) {
		again := send(key, body)
		s.add(k.name+", "+what, expected+" (replay)", again, notReplay(first, again))
		s.count(again, k)
	}
	repeat("again", k.body)
	repeat("in other words", k.same)
	refused("other payload", send(key, k.other), http.StatusUnprocessableEntity, "idempotency_payload_mismatch")
	repeat("again after that", k.body) // a mismatch changes nothing
	refused("no key", send("", k.body), http.StatusBadRequest, "idempotency_key_missing")
	refused("two keys in one", send(key+"-a, "+key+"-b", k.body), http.StatusBadRequest, "idempotency_key_invalid")
	if k.another {
		a := send(key+"-2", k.body)
		wrong := notFirst(a, k.status, k.code)
		if a.err == nil && a.body == first.body {
			wrong = append(wrong, "it has the body of the first key's answer")
		}
		s.add(k.name+", another key", expected, a, wrong)
		s.count(a, k)
	}
	return first
}

// count adds the amount of a success to s.paid. A replay does not count, because it moves no
// money.
func (s *suite) count(a answer, k kind) {
	if a.status == http.StatusCreated && !a.replayed() {
		s.paid += k.amount
	}
}

// unguarded sends a GET twice with a key. The guard ignores GET requests, so neither answer may
// be a replay.
func (s *suite) unguarded(ctx context.Context, path string) {
	for _, what := range []string{"GET of the payment", "GET of the payment, again"} {
		a := s.client.send(ctx, request{method: http.MethodGet, path: path, key: s.keys + "-payment"})
		s.add(what, "200", a, notFirst(a, http.StatusOK, ""))
	}
}

// stranger sends a request without a token, which the authorizer must refuse.
func (s *suite) stranger(ctx context.Context) {
	a := s.client.send(ctx, request{path: payment.path, key: s.keys + "-stranger", body: payment.body, noToken: true})
	s.add("payment, no token", "401", a, notFirst(a, http.StatusUnauthorized, ""))
	s.count(a, payment)
}
