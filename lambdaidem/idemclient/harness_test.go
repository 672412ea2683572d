package idemclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// TestMain checks that no goroutine or timer of the client outlives a request.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const host = "api.example.com"

// sent describes one attempt as base received it.
type sent struct {
	at     time.Time
	method string
	url    string
	keys   []string
	header http.Header
	body   string
	length int64
}

// step returns the response or error for one attempt.
type step func(*http.Request) (*http.Response, error)

// script is a base transport that answers with its steps, one for each attempt, and repeats the
// last step. As an http.RoundTripper must, it reads the request's body and closes it.
type script struct {
	steps []step

	mu   sync.Mutex
	sent []sent
	open atomic.Int64 // number of responses whose body is not closed
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	got := sent{at: time.Now(), method: r.Method, url: r.URL.String(), header: r.Header.Clone(), length: r.ContentLength}
	for name, values := range r.Header {
		if strings.EqualFold(name, "Idempotency-Key") {
			got.keys = append(got.keys, values...)
		}
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if cerr := r.Body.Close(); err != nil || cerr != nil {
			return nil, errors.Join(err, cerr)
		}
		got.body = string(body)
	}
	s.mu.Lock()
	n := min(len(s.sent), len(s.steps)-1)
	s.sent = append(s.sent, got)
	s.mu.Unlock()
	resp, err := s.steps[n](r)
	if resp != nil {
		s.open.Add(1)
		resp.Body = &counted{ReadCloser: resp.Body, open: &s.open}
		resp.Request = r
	}
	return resp, err
}

// closed fails the test if a response is still open.
func (s *script) closed(t *testing.T) {
	t.Helper()
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d answers were not closed", n)
	}
}

// oneKey returns the key of all attempts. It fails the test unless all attempts have the same
// single key.
func (s *script) oneKey(t *testing.T) string {
	t.Helper()
	for i, got := range s.sent {
		if len(got.keys) != 1 || got.keys[0] != s.sent[0].keys[0] {
			t.Fatalf("attempt %d has the keys %q, the first one %q", i+1, got.keys, s.sent[0].keys)
		}
	}
	return s.sent[0].keys[0]
}

type counted struct {
	io.ReadCloser
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.ReadCloser.Close()
}

// answer returns a step that responds with a status and a body. header has names and values in
// turn.
func answer(status int, body string, header ...string) step {
	return func(*http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		for i := 0; i < len(header); i += 2 {
			resp.Header.Add(header[i], header[i+1])
		}
		return resp, nil
	}
}

// problem returns a step that responds with a problem document with this code.
func problem(status int, code string, header ...string) step {
	doc, err := json.Marshal(map[string]any{"status": status, "code": code})
	if err != nil {
		panic(err)
	}
	return answer(status, string(doc), append(header, "Content-Type", "application/problem+json")...)
}

func fails(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// errNetwork is the error of a connection that was reset.
var errNetwork = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}

// post returns a guarded request with a body that can be sent again.
func post(ctx context.Context, t *testing.T, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/payments", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read returns the status and body of a response, and closes it.
func read(t *testing.T, resp *http.Response) (int, string) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err != nil || cerr != nil {
		t.Error(err, cerr)
	}
	return resp.StatusCode, string(body)
}

func client(base http.RoundTripper, optFns ...func(*idemclient.Options)) *http.Client {
	return &http.Client{Transport: idemclient.New(base, []string{host}, optFns...)}
}

// pipes is a network in memory. Goroutines that wait for a real network keep the time of a synctest
// bubble from advancing; those that wait for pipes don't.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen returns a new network in memory and a transport that dials into it for every URL.
func listen(t *testing.T) (*pipes, *http.Transport) {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	tr := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		_ = p.Close()
		tr.CloseIdleConnections()
	})
	return p, tr
}

// serve runs a handler on a new network in memory, and returns a transport to it.
func serve(t *testing.T, h http.Handler) *http.Transport {
	t.Helper()
	p, tr := listen(t)
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour, ErrorLog: nil}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(p)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return tr
}
