package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// A DirectTransport makes the first attempt of each call. It is faster than the SDK's client,
// because it does not use the SDK's middleware. If the attempt has to be repeated, the SDK's client
// makes all later attempts.
type DirectTransport interface {
	// Attempt makes the first attempt of a call, and returns the outcome. If it did not send the
	// request, it returns nil. The SDK's client then makes the first attempt.
	Attempt(context.Context, *Request) *Attempt
}

// Use lets t make the first attempt of each call of c; see [DirectTransport]. It must be called
// before the first call.
func (c *Client) Use(t DirectTransport) { c.direct = t }

// An Attempt is the outcome of one attempt to send a request: a response or an error.
type Attempt struct {
	Status int         // the response's status; 0 if there was no response
	Header http.Header // the response's header
	Body   string      // the response's body, or the part of it that was received
	Cut    error       // why the body is incomplete or damaged; nil if it is complete
	Err    error       // why there was no response; nil if there was one
	Late   bool        // the attempt failed because of Options.AttemptTimeout, not because the caller's context ended

	conn connection
}

// Traced returns a copy of ctx that counts the connections that the attempt uses. The attempt's
// request must be sent with this copy. If the attempt fails, the count helps to decide whether the
// request may have been applied.
func (a *Attempt) Traced(ctx context.Context) context.Context { return a.conn.traced(ctx) }

// Send sends r, the request of the attempt, and stores the response or the error in a. The context
// of r must be the context that Traced returned, or a context derived from it. Otherwise the
// connections of the attempt are not counted.
func (a *Attempt) Send(h *HTTP, r *http.Request) {
	resp, err := h.Send(r)
	if err != nil {
		a.Err = err
		return
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	a.Body, a.Cut = h.body(resp)
}

// whole reports whether the attempt got a complete response.
func (a *Attempt) whole() bool { return a.Err == nil && a.Cut == nil }

// outcome returns the response or the error of the attempt, as an HTTP client would return it
// for the request r.
func (a *Attempt) outcome(r *http.Request) (*http.Response, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	body := io.Reader(bytes.NewReader([]byte(a.Body)))
	if a.Cut != nil {
		body = io.MultiReader(body, failing{a.Cut})
	}
	return &http.Response{
		Status: http.StatusText(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.Header, Body: io.NopCloser(body), ContentLength: int64(len(a.Body)), Request: r,
	}, nil
}

// failing is a reader that always fails with err.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// buffers is a pool of the buffers into which the bodies of responses are read.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled is the maximum capacity in bytes of a buffer that is returned to the pool.
const maxPooled = 64 << 10

// body reads a response's body to its end and checks it against the checksum in the header.
// If it returns an error, it also returns the bytes that it has read.
func (h *HTTP) body(resp *http.Response) (string, error) {
	buffer, _ := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	_, err := buffer.ReadFrom(resp.Body)
	_ = resp.Body.Close() // the body was read already
	if err == nil {
		err = h.damage(resp.Header, buffer.Bytes())
	}
	body := buffer.String()
	if buffer.Cap() <= maxPooled {
		buffers.Put(buffer)
	}
	return body, err
}
