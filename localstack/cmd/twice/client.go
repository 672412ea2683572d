package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// request is one HTTP request.
type request struct {
	method  string // empty: POST
	path    string
	key     string // empty: no Idempotency-Key header
	body    string
	noToken bool
}

// answer is the response to a request, or the error if there was none.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

const replayMark = "X-Idempotency-Replayed"

// replayed reports whether the guard marked the answer as a replay.
func (a answer) replayed() bool { return a.header.Get(replayMark) == "true" }

// code returns the code of a problem document (RFC 9457), or "" if the body is none.
func (a answer) code() string {
	var doc struct{ Code string }
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &doc) != nil {
		return ""
	}
	return doc.Code
}

// String returns the text for the table: the status with the code and whether the answer is a
// replay, or the error.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	text := fmt.Sprint(a.status)
	if code := a.code(); code != "" {
		text += " " + code
	}
	if a.replayed() {
		text += " (replay)"
	}
	return text
}

// client sends requests and counts them.
type client struct {
	http        *http.Client
	base, token string
	sent        atomic.Int64
}

// answerTimeout is the time limit for an answer. It exceeds the 30 s after which an HTTP API
// stops waiting for its function ("Quotas for configuring and running an HTTP API").
const answerTimeout = 35 * time.Second

func newClient(base, token string) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // compare the bodies as they are sent
	transport.MaxIdleConnsPerHost = crowd
	return &client{http: &http.Client{Transport: transport, Timeout: answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, base: base, token: token}
}

func (c *client) send(ctx context.Context, r request) answer {
	method := r.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{err: err}
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if !r.noToken {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	// Without GetBody, the transport can't send a request with a body again by itself, over a new
	// connection. Otherwise it could, because it takes a request with an Idempotency-Key for
	// idempotent. The suite must know of every repetition.
	req.GetBody = nil
	c.sent.Add(1)
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{err: fmt.Errorf("read the answer to %s %s: %w", method, r.path, err)}
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
}

// awaitHealth waits until GET /health answers 200, because a deployment that has just finished
// may not be available everywhere yet. pause is the time between requests. After wait,
// awaitHealth returns an error with the last answer.
func (c *client) awaitHealth(ctx context.Context, wait, pause time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	last := answer{err: context.DeadlineExceeded}
	for {
		a := c.send(ctx, request{method: http.MethodGet, path: "/health"})
		if a.status == http.StatusOK {
			return nil
		}
		if ctx.Err() == nil {
			last = a // keep the last real answer, not the error of the ended context
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("GET %s/health is not 200 after %v; the last answer: %v", c.base, wait, last)
		}
	}
}
