package idemclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// This file tests the client together with the guard, over HTTP on a network in memory.

const api = "http://api/payments"

// guarded returns a transport to a handler behind the toolkit's guard. If around is not nil, it
// handles each request instead, and may break what is sent over the wire. n is the number of the
// request, from 1.
func guarded(t *testing.T, h http.HandlerFunc, around func(n int, w http.ResponseWriter, r *http.Request, guarded http.Handler)) *http.Transport {
	t.Helper()
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers, o.Observer = true, lambdaidem.Discard })
	inner := guard.Middleware(h)
	var n atomic.Int64
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if around == nil {
			inner.ServeHTTP(w, r)
			return
		}
		around(int(n.Add(1)), w, r, inner)
	}))
}

// pay sends one payment through a new client.
func pay(ctx context.Context, rt http.RoundTripper, body string, optFns ...func(*idemclient.Options)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, api, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: idemclient.New(rt, []string{"http://api"}, optFns...)}).Do(r)
}

// kill writes the text wire to the connection of a request and closes the connection.
func kill(w http.ResponseWriter, wire string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, wire)
	_ = conn.Close()
}

// If a response is lost or cut before its body, the client sends the request again and gets
// a replay. The handler has one effect.
func TestC1_ALostAnswerIsReplayed(t *testing.T) {
	for name, wire := range map[string]string{
		"nothing":        "",
		"half a status":  "HTTP/1.1 20",
		"half a header":  "HTTP/1.1 201 Created\r\nContent-Le",
		"no end of them": "HTTP/1.1 201 Created\r\nContent-Length: 6\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				effects := 0
				tr := guarded(t, func(w http.ResponseWriter, _ *http.Request) {
					effects++
					w.WriteHeader(201)
					_, _ = fmt.Fprintf(w, "paid %d", effects)
				}, func(n int, w http.ResponseWriter, r *http.Request, guarded http.Handler) {
					if n == 1 {
						guarded.ServeHTTP(httptest.NewRecorder(), r)
						kill(w, wire)
						return
					}
					guarded.ServeHTTP(w, r)
				})
				resp, err := pay(t.Context(), tr, "100")
				if err != nil {
					t.Fatal(err)
				}
				status, body := read(t, resp)
				if status != 201 || body != "paid 1" || effects != 1 || resp.Header.Get("X-Idempotency-Replayed") != "true" {
					t.Errorf("%d %q after %d effects, %v", status, body, effects, resp.Header)
				}
			})
		})
	}
}

// If the body of a response is cut, the caller gets an error from reading the body, and the
// client does not retry. A request with the same key then gets the whole response.
func TestC1_ACutBodyIsAReadError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		effects, requests := 0, 0
		tr := guarded(t, func(w http.ResponseWriter, _ *http.Request) {
			effects++
			_, _ = io.WriteString(w, "paid 1")
		}, func(n int, w http.ResponseWriter, r *http.Request, guarded http.Handler) {
			requests = n
			if n == 1 {
				guarded.ServeHTTP(httptest.NewRecorder(), r)
				kill(w, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npai")
				return
			}
			guarded.ServeHTTP(w, r)
		})
		resp, err := pay(t.Context(), tr, "100")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "pai" || !errors.Is(err, io.ErrUnexpectedEOF) || requests != 1 {
			t.Fatalf("the caller read %q and %v after %d requests", body, err, requests)
		}
		again, err := pay(idemclient.WithKey(t.Context(), resp.Request.Header.Get("Idempotency-Key")), tr, "100")
		if err != nil {
			t.Fatal(err)
		}
		if _, body := read(t, again); body != "paid 1" || effects != 1 {
			t.Errorf("%q after %d effects", body, effects)
		}
	})
}

// A duplicate that arrives while the first request is running waits until that has
// finished, and gets its response.
func TestC1_InProgressIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effects atomic.Int64
		tr := guarded(t, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(3 * time.Second)
			_, _ = fmt.Fprintf(w, "paid %d", effects.Add(1))
		}, nil)
		var inProgress atomic.Int64
		ctx := idemclient.WithKey(t.Context(), "order-1")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				resp, err := pay(ctx, tr, "100", func(o *idemclient.Options) {
					o.Observe = func(_ context.Context, a idemclient.Attempt) {
						if a.Code == string(lambdaidem.ErrInProgress) && a.Retry && a.Wait >= time.Second { // the wait is the Retry-After of the 409
							inProgress.Add(1)
						}
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				if status, body := read(t, resp); status != 200 || body != "paid 1" {
					t.Errorf("%d %q", status, body)
				}
			})
		}
		wg.Wait()
		if effects.Load() != 1 || inProgress.Load() < 4 {
			t.Errorf("%d effects, %d times in progress", effects.Load(), inProgress.Load())
		}
	})
}

// If an attempt releases its record, the client's retry runs the handler again. All
// attempts are one operation with one effect.
func TestC1_AFailingHandlerRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		tr := guarded(t, func(w http.ResponseWriter, r *http.Request) {
			attempts = append(attempts, lambdaidem.Attempt(r.Context()))
			switch len(attempts) {
			case 1:
				http.Error(w, "busy", http.StatusServiceUnavailable)
			case 2:
				w.WriteHeader(http.StatusTooManyRequests)
			case 3:
				panic(http.ErrAbortHandler) // closes the connection without a response
			default:
				_, _ = io.WriteString(w, "paid")
			}
		}, nil)
		resp, err := pay(t.Context(), tr, "100")
		if err != nil {
			t.Fatal(err)
		}
		if status, body := read(t, resp); status != 200 || body != "paid" || fmt.Sprint(attempts) != "[1 2 3 4]" {
			t.Errorf("%d %q after the attempts %v", status, body, attempts)
		}
	})
}

// A final response is requested once. A stored failure with a temporary status is
// requested at most twice: the client retries it, and the replay is final.
func TestC1_WhatTheGuardSaysForGoodStands(t *testing.T) {
	reject := func(status int, permanent bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = w, r
			if permanent {
				w.Header().Set("Stored", "1")
			}
			w.WriteHeader(status)
		}
	}
	for name, c := range map[string]struct {
		handler  http.HandlerFunc
		before   string // a payload that was sent earlier with the same key; "" for none
		status   int
		requests int
	}{
		"payment required":            {reject(402, false), "", 402, 1},
		"conflict of the application": {reject(409, false), "", 409, 1},
		"mismatch":                    {reject(200, false), "another", 422, 1},
		"stored 503":                  {reject(503, true), "", 503, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
					o.AnonymousCallers, o.Observer = true, lambdaidem.Discard
					o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
						if len(r.Header["Stored"]) > 0 {
							return lambdaidem.OutcomeFailed
						}
						return lambdaidem.DefaultOutcome(r)
					}
				})
				inner := guard.Middleware(c.handler)
				tr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests++; inner.ServeHTTP(w, r) }))
				ctx := idemclient.WithKey(t.Context(), "k")
				if c.before != "" {
					resp, err := pay(ctx, tr, c.before)
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					requests = 0
				}
				resp, err := pay(ctx, tr, "100")
				if err != nil {
					t.Fatal(err)
				}
				if status, body := read(t, resp); status != c.status || requests != c.requests {
					t.Errorf("%d %q after %d requests", status, body, requests)
				}
			})
		})
	}
}

// A body of unknown length is sent with a Content-Length. Without one, the guard would answer
// 411 in a handler that reads the body.
func TestC1_AKeptBodyHasALength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := guarded(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s of %d bytes", body, r.ContentLength)
		}, nil)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api, struct{ io.Reader }{strings.NewReader("100")})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := idemclient.New(tr, []string{"http://api"}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := read(t, resp); status != 200 || body != "100 of 3 bytes" {
			t.Errorf("%d %q", status, body)
		}
	})
}

// Many clients share a few keys, the network loses requests and responses, and the handler
// fails at times. Each key has one effect, and all callers of a key get the same response.
func TestC1_AStormHasOneEffectPerKey(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			chance := func(p float64) bool { mu.Lock(); defer mu.Unlock(); return rng.Float64() < p }
			effects, answers := make(map[string]int), make(map[string]string)
			tr := guarded(t, func(w http.ResponseWriter, r *http.Request) {
				if chance(0.2) {
					w.WriteHeader(503)
					return
				}
				time.Sleep(50 * time.Millisecond)
				key := lambdaidem.Key(r.Context())
				mu.Lock()
				defer mu.Unlock()
				effects[key]++
				_, _ = fmt.Fprintf(w, "payment %s/%d", key, effects[key])
			}, func(_ int, w http.ResponseWriter, r *http.Request, guarded http.Handler) {
				switch {
				case chance(0.1):
					kill(w, "") // before the request was carried out
				case chance(0.2):
					guarded.ServeHTTP(httptest.NewRecorder(), r)
					kill(w, "HTTP/1.1 2") // after the request was carried out
				default:
					guarded.ServeHTTP(w, r)
				}
			})
			var wg sync.WaitGroup
			for i := range 12 {
				key := fmt.Sprintf("order-%d", i%3)
				wg.Go(func() {
					resp, err := pay(idemclient.WithKey(t.Context(), key), tr, key, func(o *idemclient.Options) { o.MaxAttempts = 40 })
					if err != nil {
						t.Error(err)
						return
					}
					status, body := read(t, resp)
					mu.Lock()
					defer mu.Unlock()
					if answers[key] == "" {
						answers[key] = body
					}
					if status != 200 || body != answers[key] || effects[key] != 1 {
						t.Errorf("seed %d: %s got %d %q, others %q, after %d effects", seed, key, status, body, answers[key], effects[key])
					}
				})
			}
			wg.Wait()
		})
	}
}
