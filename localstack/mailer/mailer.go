// Package mailer emulates an outside service for tests of retries: a service that sends mails to
// payers. Mails can't be recalled. The service honors Idempotency-Key: each key has one mail and
// one answer.
//
//	POST /mails   Idempotency-Key: K   {"to":"…","payment":"pay_…","amount":1250,"currency":"EUR","reference":"rent"}
//	201 {"id":"mail_1"}    422 {"reason":"…"}    503
//
// Words in the payment's reference set the behavior for that mail, as in package clearing. They
// begin with mail-, because other services also read the reference:
//
//	mail-delay=1500   answers no earlier than 1,500 milliseconds after the effect
//	mail-fails=2      answers 503 to the first two calls with a key, without an effect
//	mail-loses=1      has the effect, but closes the connection of the first call without an answer
//	mail-refuses      answers 422, and sends no mail
package mailer

import (
	"fmt"
	"net/http"

	"github.com/lambdaidem/toolkit/localstack/internal/outside"
)

// Effect is what the service did for one key.
type Effect struct {
	Key     string
	To      string // recipient, from the order
	Payment string
	Amount  int64
	Calls   int  // number of calls with the key, including failed calls
	Refused bool // answered with 422; no mail was sent
}

// Service is a running service.
type Service struct {
	outside *outside.Service[order]
}

type order struct {
	To, Payment, Currency, Reference string
	Amount                           int64
}

// Start starts a service on a free port of 127.0.0.1.
func Start() (*Service, error) {
	s, err := outside.Start(outside.Kind[order]{
		Path:    "/mails",
		Prefix:  "mail-",
		Words:   func(o order) string { return o.Reference },
		Valid:   func(o order) bool { return o.Payment != "" && o.Amount > 0 },
		Answer:  func(n int, _ order) (int, string) { return http.StatusCreated, fmt.Sprintf(`{"id":"mail_%d"}`, n) },
		Refusal: `{"reason":"nobody has this address"}`,
	})
	if err != nil {
		return nil, fmt.Errorf("mailer: %w", err)
	}
	return &Service{s}, nil
}

// URL returns the service's base URL.
func (s *Service) URL() string { return s.outside.URL() }

// Close stops the service and closes every connection.
func (s *Service) Close() error { return s.outside.Close() }

// Effects returns the effects by key.
func (s *Service) Effects() map[string]Effect {
	all := map[string]Effect{}
	for key, done := range s.outside.Done() {
		all[key] = Effect{Key: key, To: done.Order.To, Payment: done.Order.Payment, Amount: done.Order.Amount, Calls: done.Calls, Refused: done.Refused}
	}
	return all
}

// Calls returns the number of calls by key, including calls without an effect.
func (s *Service) Calls() map[string]int { return s.outside.Calls() }

// Misuses describes the calls that a correct client never makes: without a key, without a valid
// order, or with one key for two mails.
func (s *Service) Misuses() []string { return s.outside.Misuses() }
