// Package proxy stands between the functions and DynamoDB Local and breaks, at
// a point that a test chooses, what passes through it: it loses a request or
// its reply, cuts a connection, refuses, or holds a call so that the process
// that waits for it can be killed or stopped at that very point.
//
//	gate := proxy.HoldRequest()
//	p, err := proxy.Start(server.Endpoint(), func(r *proxy.Request) proxy.Fault {
//		if r.Operation == "UpdateItem" {
//			return gate.Fault
//		}
//		return nil // it passes
//	})
//
// It listens on loopback alone.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Proxy is a running proxy.
type Proxy struct {
	database string
	choose   func(*Request) Fault
	listener net.Listener
	server   *http.Server
	client   *http.Client
	ctx      context.Context // ends with Close, and with it every call in progress
	cancel   context.CancelFunc

	mu      sync.Mutex
	closed  bool // no new calls
	serving sync.WaitGroup
}

// Request is a call of DynamoDB's API as it arrived.
type Request struct {
	// Operation is the API's name for it: PutItem, say.
	Operation string
	// TraceID is the invocation's that it belongs to, as the emulator's
	// Process.TraceID has it; empty if the caller is no Lambda function.
	TraceID string
	// Body is its JSON.
	Body []byte
	// Trace is told what becomes of the call. It is nil on arrival, and choose may set it.
	Trace *Trace
}

// Fault is what becomes of a call. It may take its time: nothing but its own
// caller waits for it.
type Fault func(*Call)

// Start starts a proxy before the database at a base URL. For each call choose
// says what becomes of it; nil stands for [Pass]. It is called by several
// goroutines at once.
func Start(database string, choose func(*Request) Fault) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: a port to listen on: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		database: database,
		choose:   choose,
		listener: listener,
		client:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}},
		ctx:      ctx,
		cancel:   cancel,
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	p.serving.Go(func() { _ = p.server.Serve(listener) }) // ends with Close
	return p, nil
}

// URL returns the proxy's base URL, for AWS_ENDPOINT_URL_DYNAMODB.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close cuts every connection, ends what is held and returns when nothing of
// the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	p.serving.Wait()
	p.client.CloseIdleConnections()
	return err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		return
	}
	defer p.serving.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller died while it sent
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	call := &Call{
		Request: Request{Operation: operation, TraceID: r.Header.Get("X-Amzn-Trace-Id"), Body: body},
		proxy:   p,
		header:  r.Header,
		writer:  w,
		gone:    r.Context(),
	}
	fault := p.choose(&call.Request)
	if fault == nil {
		fault = Pass
	}
	fault(call)
}

// begin makes Close wait for a call, which the HTTP server itself does not do.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.serving.Add(1)
	return true
}

// Call is one request and its caller, who waits.
type Call struct {
	Request

	proxy  *Proxy
	header http.Header
	writer http.ResponseWriter
	gone   context.Context // ends when the caller closes its connection
}

// Reply is what the database answered.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Deliver gives the request to the database. It does so even when the caller
// has gone: what is on the wire arrives.
func (c *Call) Deliver() (Reply, error) {
	if trace := c.Trace; trace != nil && trace.Deliver != nil {
		return trace.Deliver(c.deliver)
	}
	return c.deliver()
}

func (c *Call) deliver() (Reply, error) {
	r, err := http.NewRequestWithContext(c.proxy.ctx, http.MethodPost, c.proxy.database, bytes.NewReader(c.Body))
	if err != nil {
		return Reply{}, fmt.Errorf("proxy: %w", err)
	}
	r.Header = c.header.Clone()
	resp, err := c.proxy.client.Do(r)
	if err != nil {
		return Reply{}, fmt.Errorf("proxy: %s: %w", c.Operation, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return Reply{}, fmt.Errorf("proxy: the reply to %s: %w", c.Operation, err)
	}
	return Reply{resp.StatusCode, resp.Header, body}, nil
}

// Answer gives the caller a reply. A caller that has gone gets none.
func (c *Call) Answer(reply Reply) {
	if trace := c.Trace; trace != nil && trace.Answer != nil {
		trace.Answer(reply, c.gone.Err() != nil)
	}
	header := c.writer.Header()
	for name, values := range reply.Header {
		header[name] = values
	}
	c.writer.WriteHeader(reply.Status)
	_, _ = c.writer.Write(reply.Body)
}

// Cut resets the caller's connection (RFC 9293, section 3.5.3).
func (c *Call) Cut() {
	c.tellCut()
	c.reset()
}

func (c *Call) reset() {
	conn, err := c.hijack()
	if err != nil {
		return // it is cut already
	}
	_ = conn.Close()
}

// CutShort answers with the first half of a reply and resets the connection.
func (c *Call) CutShort(reply Reply) {
	c.tellCut()
	conn, err := c.hijack()
	if err != nil {
		return
	}
	half := reply.Body[:len(reply.Body)/2]
	// Whether it arrives makes no difference: the reply is lost either way.
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d \r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s",
		reply.Status, len(reply.Body), half)
	_ = conn.CloseWrite()
	_ = conn.Close()
}

func (c *Call) tellCut() {
	if trace := c.Trace; trace != nil && trace.Cut != nil {
		trace.Cut()
	}
}

func (c *Call) hijack() (*net.TCPConn, error) {
	conn, _, err := http.NewResponseController(c.writer).Hijack()
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn) // of our own listener
	return tcp, tcp.SetLinger(0)
}
