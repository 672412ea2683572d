package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/mux"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestRefund_IsMadeOnce(t *testing.T) {
	refund := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for _, c := range []struct {
		path, route string
		router      func(*lambdaidem.Guard) http.Handler
	}{
		{"/payments/7/refunds", "POST example.com/payments/{id}/refunds", func(guard *lambdaidem.Guard) http.Handler {
			m := http.NewServeMux()
			m.Handle("POST /payments/{id}/refunds", guard.Middleware(refund))
			return m
		}},
		{"/payments/7/refunds", "POST example.com/payments/{id}/refunds", func(guard *lambdaidem.Guard) http.Handler {
			r := chi.NewRouter()
			r.Use(middleware.Recoverer, middleware.Compress(5)) // outside of the guard
			r.With(guard.Middleware).Post("/payments/{id}/refunds", refund)
			return r
		}},
		{"/payments/7/refunds", "POST example.com/payments/7/refunds", func(guard *lambdaidem.Guard) http.Handler {
			r := mux.NewRouter()
			r.Handle("/payments/{id}/refunds", guard.Middleware(refund)).Methods(http.MethodPost)
			return r
		}},
		{"/v1/payments/7/refunds", "POST example.com/v1/payments/7/refunds", func(guard *lambdaidem.Guard) http.Handler {
			r := chi.NewRouter()
			r.With(guard.Middleware).Post("/payments/{id}/refunds", refund)
			return http.StripPrefix("/v1", r)
		}},
	} {
		var seen idemtest.Recorder
		guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers, o.Observer = true, &seen })
		r := idemtest.Request{Path: c.path, Key: "refund-1", Body: `{"amount":40}`}
		answer := idemtest.TwiceHTTP(t, c.router(guard), r.HTTP(t.Context()))
		_ = answer.Body.Close()
		if got := seen.Last(t).Route; got != c.route {
			t.Errorf("the record's route is %s, want %s", got, c.route)
		}
	}
}

// Behind a router that is not an http.ServeMux, a request without a Content-Length gets a 411,
// unless Outermost wraps the router.
func TestRefund_TakesChunkedBodies(t *testing.T) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers, o.Observer = true, lambdaidem.Discard })
	r := chi.NewRouter()
	r.With(guard.Middleware).Post("/refunds", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for want, handler := range map[int]http.Handler{
		http.StatusLengthRequired: r,
		http.StatusCreated:        lambdaidem.Outermost(r),
	} {
		server := httptest.NewServer(handler)
		defer server.Close()
		chunked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/refunds", struct{ io.Reader }{strings.NewReader(`{"amount":40}`)})
		if err != nil {
			t.Fatal(err)
		}
		chunked.Header.Set("Idempotency-Key", "refund-1")
		answer, err := server.Client().Do(chunked)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("the answer is %s, want %d", answer.Status, want)
		}
	}
}

type userKey struct{}

// authenticate stands for the reader's own middleware. Here the Authorization header is the name of
// the user.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get("Authorization"))))
	})
}

func TestRefund_BelongsToItsCaller(t *testing.T) {
	users := 0
	refund := func(w http.ResponseWriter, _ *http.Request) {
		users++
		w.WriteHeader(http.StatusCreated)
	}
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Principal = func(ctx context.Context, _ *lambdaidem.Request) (string, error) {
			user, _ := ctx.Value(userKey{}).(string)
			return user, nil
		}
	})
	r := chi.NewRouter()
	r.Use(middleware.Logger, authenticate, middleware.Compress(5)) // outside of the guard
	r.With(guard.Middleware).Post("/payments/{id}/refunds", refund)
	for _, user := range []string{"alice", "bob"} {
		request := idemtest.Request{Path: "/payments/7/refunds", Key: "refund-1", Header: http.Header{"Authorization": {user}}}
		_ = idemtest.TwiceHTTP(t, r, request.HTTP(t.Context())).Body.Close()
	}
	if users != 2 {
		t.Errorf("%d users were served with one key, want 2", users)
	}
}
