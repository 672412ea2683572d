package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// A First makes the first attempt of calls in place of the SDK's client.
type First interface {
	// Attempt makes the first attempt of a call. It returns nil if it did not send the
	// request; the SDK's client then makes the first attempt.
	Attempt(context.Context, *Request) *Attempt
}

// Use has f make the first attempts. It must be called before the first call.
func (c *Client) Use(f First) { c.first = f }

// An Attempt is the outcome of an attempt to send a request: an answer, or an error.
type Attempt struct {
	Status int // of the answer; 0: no answer came
	Header http.Header
	Body   string
	Cut    error // why the rest of the body did not come
	Err    error // why no answer came
	Late   bool  // the attempt ran out of its time, before the caller's was over

	conn connection
}

// Traced returns a context to send the attempt with. The attempt learns from it whether
// it had a connection.
func (a *Attempt) Traced(ctx context.Context) context.Context { return a.conn.traced(ctx) }

// Send sends the attempt's request, and keeps what comes of it.
func (a *Attempt) Send(h *HTTP, r *http.Request) {
	resp, err := h.Send(r)
	if err != nil {
		a.Err = err
		return
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	a.Body, a.Cut = h.body(resp)
}

// whole reports whether a whole answer came.
func (a *Attempt) whole() bool { return a.Err == nil && a.Cut == nil }

// outcome returns what an HTTP client would have returned.
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

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// buffers are those that bodies are read into.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// mostKept is the size in bytes up to which a buffer is kept.
const mostKept = 64 << 10

// body reads an answer's body to its end, and checks it.
func (h *HTTP) body(resp *http.Response) (string, error) {
	buffer, _ := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	_, err := buffer.ReadFrom(resp.Body)
	_ = resp.Body.Close() // it was read
	if err == nil {
		err = h.damage(resp.Header, buffer.Bytes())
	}
	body := buffer.String()
	if buffer.Cap() <= mostKept {
		buffers.Put(buffer)
	}
	return body, err
}
