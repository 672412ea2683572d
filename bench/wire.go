package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// wire is the HTTP client of one side. It is the SDK's own client, and counts requests and bytes.
// Each side has its own wire, with the same settings.
type wire struct {
	client *awshttp.BuildableClient

	trips, sent, received atomic.Int64

	mu    sync.Mutex
	conns []net.Conn

	tap atomic.Pointer[func(body []byte)] // called with the body of each request; nil for none
}

func newWire() *wire {
	w := &wire{}
	w.client = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		// The SDK keeps ten idle connections for a host. With more concurrent requests, both sides
		// would close and open connections all the time.
		t.MaxIdleConnsPerHost = maxAtOnce
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.conns = append(w.conns, conn)
			return &countedConn{Conn: conn, wire: w}, nil
		}
	})
	return w
}

// close closes every connection. The SDK's client offers no way to do this.
func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close() // the server may have closed it already
	}
}

// Do sends a request: see [http.Client.Do].
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.trips.Add(1)
	if tap := w.tap.Load(); tap != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		(*tap)(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return w.client.Do(r)
}

// record calls do and returns the bodies of the requests that are sent meanwhile.
func (w *wire) record(do func() error) ([][]byte, error) {
	var bodies [][]byte
	tap := func(body []byte) { bodies = append(bodies, body) }
	w.tap.Store(&tap)
	defer w.tap.Store(nil)
	err := do()
	return bodies, err
}

// countedConn is a connection that counts every byte, including headers.
type countedConn struct {
	net.Conn
	wire *wire
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wire.received.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wire.sent.Add(int64(n))
	return n, err
}
