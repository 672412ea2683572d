// Package clearing emulates an outside service for tests of retries: a clearing house that must
// be told about transfers. It is separate from the database, so its effects can't be part of a
// transaction, and they can't be undone. It can be slow, fail, or lose its answer after the
// effect. It honors Idempotency-Key: each key has one effect and one answer.
//
//	POST /clearings   Idempotency-Key: K   {"transfer":"tra_…","amount":1250,"currency":"EUR","reference":"rent"}
//	201 {"id":"clr_1"}    422 {"reason":"…"}    503
//
// Words in the order's reference, separated by spaces, set the behavior for that order, as in the
// sandboxes of card networks:
//
//	delay=1500   answers no earlier than 1,500 milliseconds after the effect
//	fail=2       answers 503 to the first two calls with a key, without an effect
//	lose=1       has the effect, but closes the connection of the first call without an answer
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
	Transfer string // ID of the transfer, from the order
	Amount   int64
	Calls    int // number of calls with the key, including failed calls
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

// Close stops the service and closes every connection.
func (s *Service) Close() error { return s.outside.Close() }

// OnCall has a function called for each call with a valid order, before its answer: with the ID of
// the transfer, a phrase that says what the service does, and whether that is an effect.
func (s *Service) OnCall(f func(transfer, does string, effect bool)) {
	phrases := map[outside.Did]string{
		outside.Nothing: "is out of order, and does nothing",
		outside.Made:    "clears the transfer, which can't be undone",
		outside.Refused: "refuses the transfer, for good",
		outside.Again:   "has decided about the transfer before, by the same key: it gives its first answer again, and does nothing",
	}
	s.outside.OnCall(func(o order, did outside.Did) { f(o.Transfer, phrases[did], did == outside.Made) })
}

// Effects returns the effects by key.
func (s *Service) Effects() map[string]Effect {
	all := map[string]Effect{}
	for key, done := range s.outside.Done() {
		all[key] = Effect{Key: key, Transfer: done.Order.Transfer, Amount: done.Order.Amount, Calls: done.Calls, Refused: done.Refused}
	}
	return all
}

// Misuses describes the calls that a correct client never makes: without a key, without a valid
// order, or with one key for two orders.
func (s *Service) Misuses() []string { return s.outside.Misuses() }
