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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
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
	listener net.Listener
	server   *http.Server
	done     chan struct{} // closed when nothing is served any more

	mu      sync.Mutex
	calls   map[string]int // by key
	effects map[string]*effect
	misuses []string
}

// effect is what was done for a key, and the answer that it keeps.
type effect struct {
	Effect
	order  order
	at     time.Time
	status int
	body   string
}

type order struct {
	Transfer, Currency, Reference string
	Amount                        int64
}

// Start starts a service on a free port of 127.0.0.1.
func Start() (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("clearing: a port to listen on: %w", err)
	}
	s := &Service{listener: listener, done: make(chan struct{}), calls: map[string]int{}, effects: map[string]*effect{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /clearings", s.clear)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ends with Close
	}()
	return s, nil
}

// URL is the service's base URL.
func (s *Service) URL() string { return "http://" + s.listener.Addr().String() }

// Close cuts every connection.
func (s *Service) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// Effects are what the service did, by key.
func (s *Service) Effects() map[string]Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Effect{}
	for key, e := range s.effects {
		all[key] = e.Effect
		done := all[key]
		done.Calls = s.calls[key]
		all[key] = done
	}
	return all
}

// Misuses are the calls that no careful client makes: without a key, or with one
// for two orders.
func (s *Service) Misuses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.misuses)
}

func (s *Service) clear(w http.ResponseWriter, r *http.Request) {
	var o order
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || key == "" || o.Transfer == "" || o.Amount <= 0 {
		s.misused("a call without a key, or without an order")
		http.Error(w, "a key and an order are wanted", http.StatusBadRequest)
		return
	}
	behaviour := behave(o.Reference)
	done, call, err := s.do(key, o, behaviour)
	switch {
	case err != nil:
		s.misused(fmt.Sprintf("%v: %s", err, key))
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case done == nil:
		http.Error(w, "out of order, as was asked for", http.StatusServiceUnavailable)
		return
	case call <= behaviour["lose"]:
		panic(http.ErrAbortHandler) // cuts the connection
	}
	delay := time.NewTimer(time.Until(done.at.Add(time.Duration(behaviour["delay"]) * time.Millisecond)))
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-r.Context().Done(): // the caller has gone
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(done.status)
	_, _ = w.Write([]byte(done.body))
}

var errOtherOrder = errors.New("one key for two orders")

// do has the effect of a call, if its key had none, and returns it; nil: the call
// fails without one.
func (s *Service) do(key string, o order, behaviour map[string]int) (done *effect, call int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[key]++
	call = s.calls[key]
	if done = s.effects[key]; done != nil {
		if done.order != o {
			return nil, call, errOtherOrder
		}
		return done, call, nil
	}
	if call <= behaviour["fail"] {
		return nil, call, nil
	}
	done = &effect{Effect: Effect{Key: key, Transfer: o.Transfer, Amount: o.Amount}, order: o, at: time.Now(),
		status: http.StatusCreated, body: fmt.Sprintf(`{"id":"clr_%d"}`, len(s.effects)+1)}
	if _, refuse := behaviour["refuse"]; refuse {
		done.Refused, done.status, done.body = true, http.StatusUnprocessableEntity, `{"reason":"the recipient's bank refuses it"}`
	}
	s.effects[key] = done
	return done, call, nil
}

func (s *Service) misused(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misuses = append(s.misuses, how)
}

// behave reads the orders in a reference.
func behave(reference string) map[string]int {
	orders := map[string]int{}
	for word := range strings.FieldsSeq(reference) {
		name, number, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(number) // no number: 0
		orders[name] = n
	}
	maps.DeleteFunc(orders, func(_ string, n int) bool { return n < 0 })
	return orders
}
