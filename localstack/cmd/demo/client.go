package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// request is one HTTP request of the demo.
type request struct {
	path    string // path of the POST
	user    string
	key     string // empty: no Idempotency-Key header
	body    string
	headers map[string]string // additional headers
}

// with returns the request with another header.
func (r request) with(name, value string) request {
	headers := map[string]string{name: value}
	for n, v := range r.headers {
		headers[n] = v
	}
	r.headers = headers
	return r
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

const replayMark = "X-Idempotency-Replayed"

// replayed reports whether the guard marked the answer as a replay.
func (a answer) replayed() bool { return a.header.Get(replayMark) == "true" }

// gist returns the part of the body to print: the code and detail of a problem document (RFC
// 9457), or the whole body otherwise.
func (a answer) gist() string {
	var doc struct{ Code, Detail string }
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &doc) != nil {
		return a.body
	}
	return doc.Code + ": " + doc.Detail
}

// code returns the code of a problem document, or "" if the body is none.
func (a answer) code() string {
	var doc struct{ Code string }
	if json.Unmarshal([]byte(a.body), &doc) != nil {
		return ""
	}
	return doc.Code
}

// client sends requests over real connections.
type client struct {
	http *http.Client
	base string
}

func newClient(base string) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // the emulator is on this machine
	transport.MaxIdleConnsPerHost = crowd
	return &client{&http.Client{Transport: transport}, base}
}

// request converts r into the HTTP request to send.
func (c *client) request(ctx context.Context, r request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+stack.Token(r.user))
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	return req, nil
}

func (c *client) send(ctx context.Context, r request) (answer, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return answer{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("send POST %s: %w", r.path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	var body bytes.Buffer
	if _, err := io.Copy(&body, resp.Body); err != nil {
		return answer{}, fmt.Errorf("read the answer to POST %s: %w", r.path, err)
	}
	return answer{resp.StatusCode, resp.Header, body.String()}, nil
}
