package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

const token = "the-caller"

// bank is a correct API: the routes of template.yaml behind a real guard.
type bank struct {
	guard *lambdaidem.Guard
	made  atomic.Int64
	spent atomic.Int64

	// If meeting is set, the payment of the crowd ends only after all other requests of the crowd
	// have received a 409, so that conflicts are certain. If it is nil, conflicts may or may not
	// occur.
	meeting *meeting
}

// meeting lets the running handler wait for the other requests.
type meeting struct {
	others sync.WaitGroup
}

func newMeeting() *meeting {
	m := &meeting{}
	m.others.Add(crowd - 1)
	return m
}

func newBank() *bank {
	return &bank{guard: lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "bank", lambdaidem.Discard
		o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return token, nil }
	})}
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	guarded := func(pattern string, serve func(http.ResponseWriter, *http.Request)) {
		mux.Handle(pattern, b.guard.Middleware(http.HandlerFunc(serve)))
	}
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /payments/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"id":%q}`, r.PathValue("id"))
	})
	guarded("POST /payments", b.pay)
	guarded("POST /payments/{id}/refunds", func(w http.ResponseWriter, _ *http.Request) { b.create(w, "refunds", -400) })
	guarded("POST /transfers", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ To string }
		if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.To == nobody {
			problem(w, http.StatusNotFound, "recipient_not_found")
			return
		}
		b.create(w, "transfers", 500)
	})
	w.Header().Set("Apigw-Requestid", fmt.Sprint("request-", b.made.Add(1))) // different in each answer
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	mux.ServeHTTP(w, r)
	if b.meeting != nil && atOnce(r) {
		b.leave(w)
	}
}

// leave counts a request of the crowd that received a 409.
func (b *bank) leave(w http.ResponseWriter) {
	if seen, ok := w.(*seenWriter); ok && seen.status == http.StatusConflict {
		b.meeting.others.Done()
	}
}

func atOnce(r *http.Request) bool {
	return strings.HasSuffix(r.Header.Get("Idempotency-Key"), "-at-once")
}

func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Currency string }
	if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Currency != "EUR" {
		problem(w, http.StatusNotFound, "account_not_found")
		return
	}
	if b.meeting != nil && atOnce(r) {
		b.meeting.others.Wait()
	}
	b.create(w, "payments", 1250)
}

func (b *bank) create(w http.ResponseWriter, what string, amount int64) {
	id := fmt.Sprint(what, "-", b.made.Add(1))
	b.spent.Add(amount)
	w.Header().Set("Location", "/"+what+"/"+id)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"id":%q}`, id)
}

func problem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"status":%d,"code":%q}`, status, code)
}

// seenWriter records the status of the response.
type seenWriter struct {
	http.ResponseWriter

	status int
}

func (w *seenWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// runOver runs the suite against an API. It returns the suite, its report, and the error of the
// report.
func runOver(t *testing.T, api http.Handler, transferTo string) (s *suite, told string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(&seenWriter{ResponseWriter: w, status: http.StatusOK}, r)
	}))
	t.Cleanup(server.Close)
	s = &suite{client: newClient(server.URL, token), keys: "run-1", transferTo: transferTo}
	s.run(t.Context())
	var out strings.Builder
	err = report(&out, s)
	return s, out.String(), err
}

// change modifies an answer of the bank.
type change func(r *http.Request, a *httptest.ResponseRecorder)

// changed returns a handler that answers as b does, with a fault.
func changed(b http.Handler, fault change) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		a := httptest.NewRecorder()
		b.ServeHTTP(a, r)
		r.Body = io.NopCloser(bytes.NewReader(body))
		fault(r, a)
		for name, values := range a.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(a.Code)
		_, _ = w.Write(a.Body.Bytes())
	})
}
