// Package clearing is an outside service to try retries on: a clearing house that
// transfers have to be told to, in another system than the database. Nothing that
// it did can be undone, and it can be slow, fail, or do its work and lose the
// answer. It honours Idempotency-Key: a key has one effect, and one answer.
//
//	POST /clearings   Idempotency-Key: K   {"transfer":"tra_…","amount":1250,"currency":"EUR","reference":"rent"}
//	201 {"id":"clr_1"}    422 {"reason":"…"}    503
//
// As the sandboxes of card networks do, it takes orders by the text of the
// reference, words apart by spaces:
//
//	delay=1500   answers when so many milliseconds have passed since its effect
//	fail=2       answers 503 to the first two calls of a key, without an effect
//	lose=1       has its effect, and cuts the connection of the first call
//	refuse       answers 422
package clearing

import (
	"fmt"
	"net/http"

	"github.com/lambdaidem/toolkit/localstack/internal/outside"
)

// Effect is what the service did for one key.
type Effect struct {
	Key      string
	Transfer string // the ID that it was told
	Amount   int64
	Calls    int // with that key, those that failed too
	Refused  bool
}

// Service is a running service.
type Service struct {
	outside *outside.Service[order]
}

type order struct {
	Transfer, Currency, Reference string
	Amount                        int64
}

// Start starts a service on a free port of 127.0.0.1.
func Start() (*Service, error) {
	s, err := outside.Start(outside.Kind[order]{
		Path:    "/clearings",
		Words:   func(o order) string { return o.Reference },
		Valid:   func(o order) bool { return o.Transfer != "" && o.Amount > 0 },
		Answer:  func(n int, _ order) (int, string) { return http.StatusCreated, fmt.Sprintf(`{"id":"clr_%d"}`, n) },
		Refusal: `{"reason":"the recipient's bank refuses it"}`,
	})
	if err != nil {
		return nil, fmt.Errorf("clearing: %w", err)
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
		all[key] = Effect{Key: key, Transfer: done.Order.Transfer, Amount: done.Order.Amount, Calls: done.Calls, Refused: done.Refused}
	}
	return all
}

// Misuses returns the calls that no careful client makes: without a key, or with one
// for two orders.
func (s *Service) Misuses() []string { return s.outside.Misuses() }
