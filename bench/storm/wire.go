package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// call is one HTTP request to DynamoDB. A retry by the SDK is another call.
type call struct {
	Operation string
	At        time.Duration // since the wave began
}

// wire is the HTTP client of a process. It counts calls and connections.
type wire struct {
	client *awshttp.BuildableClient

	mu    sync.Mutex
	began time.Time
	calls []call
	open  int
	most  int // the maximum that open has had
}

// newWire returns a wire over dynamostore.HTTPClient, or over the SDK's own client if sdks is true.
func newWire(sdks bool) *wire {
	w := &wire{client: dynamostore.HTTPClient()}
	if sdks {
		w.client = awshttp.NewBuildableClient()
	}
	w.client = w.client.WithTransportOptions(func(t *http.Transport) {
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.open++
			w.most = max(w.most, w.open)
			return &countedConn{Conn: conn, wire: w}, nil
		}
	})
	return w
}

// Do sends a request: see [http.Client.Do].
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	this := call{operation, time.Since(w.began)}
	w.calls = append(w.calls, this)
	w.mu.Unlock()
	if one := requestOf(r.Context()); one != nil {
		one.mu.Lock()
		one.calls = append(one.calls, this)
		one.mu.Unlock()
	}
	return w.client.Do(r)
}

// begin starts a wave: it discards the calls of earlier waves, and the times of further calls count
// from at.
func (w *wire) begin(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.calls = at, nil
}

// end returns the calls since begin, and the maximum number of connections that have ever been open
// at the same time.
func (w *wire) end() (calls []call, mostOpen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls, w.most
}

// countedConn is a connection that wire counts as open until it is closed.
type countedConn struct {
	net.Conn
	wire   *wire
	closed sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.closed.Do(func() {
		c.wire.mu.Lock()
		defer c.wire.mu.Unlock()
		c.wire.open--
	})
	return c.Conn.Close()
}
