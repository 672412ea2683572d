// Package outside is an outside service that honours Idempotency-Key, to try
// retries on: a key has one effect, and one answer. What it did it never undoes, and
// it can be slow, fail, or do its work and lose the answer, as its orders ask for.
// Packages clearing and mailer say what the service is about.
package outside

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

// Kind is what a service is about. O is an order: the body of a call, as JSON.
type Kind[O comparable] struct {
	Path    string                                  // that orders are posted to
	Prefix  string                                  // of the words that tell how to behave
	Words   func(O) string                          // the text that they are looked for in
	Valid   func(O) bool                            // whether a body is an order at all
	Answer  func(n int, o O) (status int, b string) // to the n-th order, as JSON
	Refusal string                                  // the body of a 422
}

// Effect is what a service did for one key.
type Effect[O comparable] struct {
	Order   O
	Calls   int // with that key, those that failed too
	Refused bool
}

// Service is a running service.
type Service[O comparable] struct {
	kind     Kind[O]
	listener net.Listener
	server   *http.Server
	done     chan struct{} // closed when nothing is served any more

	mu      sync.Mutex
	calls   map[string]int // by key
	effects map[string]*effect[O]
	misuses []string
}

// effect is what was done for a key, and the answer that it keeps.
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

// URL is the service's base URL.
func (s *Service[O]) URL() string { return "http://" + s.listener.Addr().String() }

// Close cuts every connection.
func (s *Service[O]) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// Done is what the service did, by key.
func (s *Service[O]) Done() map[string]Effect[O] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Effect[O]{}
	for key, e := range s.effects {
		all[key] = Effect[O]{Order: e.order, Calls: s.calls[key], Refused: e.refused}
	}
	return all
}

// Calls counts the calls by key, those too that had no effect.
func (s *Service[O]) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Misuses are the calls that no careful client makes: without a key, or with one
// for two orders.
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
	done, call, err := s.do(key, o, wanted)
	switch {
	case err != nil:
		s.misused(fmt.Sprintf("%v: %s", err, key))
		http.Error(w, err.Error(), http.StatusConflict)
		return
	case done == nil:
		http.Error(w, "out of order, as was asked for", http.StatusServiceUnavailable)
		return
	case call <= wanted.loses:
		panic(http.ErrAbortHandler) // cuts the connection
	}
	delay := time.NewTimer(time.Until(done.at.Add(wanted.delay)))
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
func (s *Service[O]) do(key string, o O, wanted behaviour) (done *effect[O], call int, err error) {
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
	if call <= wanted.fails {
		return nil, call, nil
	}
	done = &effect[O]{order: o, refused: wanted.refuses, at: time.Now()}
	if done.status, done.body = s.kind.Answer(len(s.effects)+1, o); done.refused {
		done.status, done.body = http.StatusUnprocessableEntity, s.kind.Refusal
	}
	s.effects[key] = done
	return done, call, nil
}

func (s *Service[O]) misused(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misuses = append(s.misuses, how)
}

// behaviour is how a service was asked to behave towards one order.
type behaviour struct {
	delay        time.Duration // from the effect to the answer
	fails, loses int           // up to this call of a key
	refuses      bool
}

// behaviourIn reads the words of a text. What is no number above 0 asks for
// nothing.
func behaviourIn(text, prefix string) behaviour {
	var b behaviour
	for word := range strings.FieldsSeq(text) {
		own, ours := strings.CutPrefix(word, prefix)
		if !ours {
			continue
		}
		name, number, _ := strings.Cut(own, "=")
		n, _ := strconv.Atoi(number) // no number: 0
		switch name {
		case "delay":
			b.delay = time.Duration(max(n, 0)) * time.Millisecond
		case "fail", "fails":
			b.fails = n
		case "lose", "loses":
			b.loses = n
		case "refuse", "refuses":
			b.refuses = true
		}
	}
	return b
}
