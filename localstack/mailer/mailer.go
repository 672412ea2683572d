// Package mailer is an outside service to try retries on: one that sends mails to
// payers, which can't be called back. It honours Idempotency-Key: a key has one mail,
// and one answer.
//
//	POST /mails   Idempotency-Key: K   {"to":"…","payment":"pay_…","amount":1250,"currency":"EUR","reference":"rent"}
//	201 {"id":"mail_1"}    422 {"reason":"…"}    503
//
// It takes orders by the text of the reference, as package clearing does, each with
// mail- before it, since other parts on the payment's way read that text too:
//
//	mail-delay=1500   answers when so many milliseconds have passed since its effect
//	mail-fails=2      answers 503 to the first two calls of a key, without an effect
//	mail-loses=1      has its effect, and cuts the connection of the first call
//	mail-refuses      answers 422, and sends nothing
package mailer

import (
	"fmt"
	"net/http"

	"github.com/lambdaidem/toolkit/localstack/internal/outside"
)

// Effect is what the service did for one key.
type Effect struct {
	Key     string
	To      string // as it was told
	Payment string
	Amount  int64
	Calls   int  // with that key, those that failed too
	Refused bool // by 422: no mail was sent
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

// Close cuts every connection.
func (s *Service) Close() error { return s.outside.Close() }

// Effects returns what the service did, by key.
func (s *Service) Effects() map[string]Effect {
	all := map[string]Effect{}
	for key, done := range s.outside.Done() {
		all[key] = Effect{Key: key, To: done.Order.To, Payment: done.Order.Payment, Amount: done.Order.Amount, Calls: done.Calls, Refused: done.Refused}
	}
	return all
}

// Calls counts the calls by key, those too that had no effect.
func (s *Service) Calls() map[string]int { return s.outside.Calls() }

// Misuses returns the calls that no careful client makes: without a key, or with one
// for two mails.
func (s *Service) Misuses() []string { return s.outside.Misuses() }
