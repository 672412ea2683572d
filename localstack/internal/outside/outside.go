// Package outside implements an outside service that honors Idempotency-Key, for tests of
// retries. Each key has one effect and one answer, and an effect is never undone. Words in an
// order can make the service slow, make it fail, or make it lose the answer after the effect.
// Packages clearing and mailer use it for two services.
package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Kind describes a service. O is the type of an order, which is the JSON body of a call.
type Kind[O comparable] struct {
	Path    string                                  // path to which orders are posted
	Prefix  string                                  // prefix of the words in an order that set the behavior
	Words   func(O) string                          // returns the text of an order that contains these words
	Valid   func(O) bool                            // reports whether a body is a valid order
	Answer  func(n int, o O) (status int, b string) // returns the answer to the n-th order, as JSON
	Refusal string                                  // body of the 422 for a refused order
}

// Effect is what a service did for one key.
type Effect[O comparable] struct {
	Order   O
	Calls   int // number of calls with the key, including failed calls
	Refused bool
}

// Service is a running service.
type Service[O comparable] struct {
	kind     Kind[O]
	listener net.Listener
	server   *http.Server
	done     chan struct{} // closed when the server has stopped

	mu      sync.Mutex
	calls   map[string]int // number of calls by key
	effects map[string]*effect[O]
	misuses []string
	onCall  func(O, Did) // nil: nobody is told
}

// Did is what a call with a valid order did.
type Did int

// What a call did.
const (
	Nothing Did = iota // the service was out of order
	Made               // the effect
	Refused            // the order, for good
	Again              // the service gave its first answer again
)

// effect is the effect of a key, and the answer to every call with that key.
type effect[O comparable] struct {
	order   O
	refused bool
	at      time.Time
	status  int
	body    string
}

// Start starts a service on a free port of 127.0.0.1.
func Start[O comparable](kind Kind[O]) (*Service[O], error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("a port to listen on: %w", err)
	}
	s := &Service[O]{kind: kind, listener: listener, done: make(chan struct{}), calls: map[string]int{}, effects: map[string]*effect[O]{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+kind.Path, s.serve)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ends with Close
	}()
	return s, nil
}

// URL returns the service's base URL.
func (s *Service[O]) URL() string { return "http://" + s.listener.Addr().String() }

// Close stops the service and closes every connection.
func (s *Service[O]) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// OnCall has a function called for each call with a valid order, before its answer.
func (s *Service[O]) OnCall(f func(O, Did)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCall = f
}

// Done returns the effects by key.
func (s *Service[O]) Done() map[string]Effect[O] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Effect[O]{}
	for key, e := range s.effects {
		all[key] = Effect[O]{Order: e.order, Calls: s.calls[key], Refused: e.refused}
	}
	return all
}

// Calls returns the number of calls by key, including calls without an effect.
func (s *Service[O]) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Misuses describes the calls that a correct client never makes: without a key, without a
// valid order, or with one key for two orders.
func (s *Service[O]) Misuses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.misuses)
}

func (s *Service[O]) serve(w http.ResponseWriter, r *http.Request) {
	var o O
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || key == "" || !s.kind.Valid(o) {
		s.misused("a call without a key, or without an order")
		http.Error(w, "a key and an order are wanted", http.StatusBadRequest)
		return
	}
	wanted := behaviourIn(s.kind.Words(o), s.kind.Prefix)
	done, call, did, err := s.do(key, o, wanted)
	if err == nil {
		s.tell(o, did)
	}
	switch {
	case err != nil:
		s.misused(fmt.Sprintf("%v: %s", err, key))
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case done == nil:
		http.Error(w, "out of order, as was asked for", http.StatusServiceUnavailable)
		return
	case call <= wanted.loses:
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	delay := time.NewTimer(time.Until(done.at.Add(wanted.delay)))
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-r.Context().Done(): // the caller has disconnected
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(done.status)
	_, _ = w.Write([]byte(done.body))
}

var errOtherOrder = errors.New("one key for two orders")

// do counts a call and returns the effect of its key. It makes the effect if the key has none.
// It returns a nil effect if the order makes this call fail, and errOtherOrder if the key has
// the effect of another order.
func (s *Service[O]) do(key string, o O, wanted behaviour) (done *effect[O], call int, did Did, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[key]++
	call = s.calls[key]
	if done = s.effects[key]; done != nil {
		if done.order != o {
			return nil, call, Nothing, errOtherOrder
		}
		return done, call, Again, nil
	}
	if call <= wanted.fails {
		return nil, call, Nothing, nil
	}
	done = &effect[O]{order: o, refused: wanted.refuses, at: time.Now()}
	did = Made
	if done.status, done.body = s.kind.Answer(len(s.effects)+1, o); done.refused {
		done.status, done.body, did = http.StatusUnprocessableEntity, s.kind.Refusal, Refused
	}
	s.effects[key] = done
	return done, call, did, nil
}

func (s *Service[O]) tell(o O, did Did) {
	s.mu.Lock()
	f := s.onCall
	s.mu.Unlock()
	if f != nil {
		f(o, did)
	}
}

func (s *Service[O]) misused(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misuses = append(s.misuses, how)
}
