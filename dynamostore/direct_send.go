package dynamostore

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

// attempt is the first attempt of a call, and what became of it.
type attempt struct {
	bytes *sameBody // of the request; what is sent again is sent as it is here
	own   sameBody  // bytes, but for a transaction's

	// What the request is made of, in one piece with it.
	conn   connection
	url    url.URL
	reader bytes.Reader
	fields [mostFields]string

	// What became of it: an answer, whole or not, or an error. None of them: it was
	// not made.
	made   bool
	status int
	header http.Header
	body   string
	cut    error // the rest of the body did not come
	err    error // no answer came
	late   bool  // the attempt's time was over; the caller's was not

	before bool // the call was ambiguous before
}

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// mostKept is how large a buffer may be to be kept.
const mostKept = 64 << 10

// write gives the attempt its bytes, if it has none. Those are not from the pool:
// they may have to be sent again, and an HTTP client may read them for longer than
// the call lasts.
func (a *attempt) write(r request) bool {
	if a.bytes == nil {
		a.bytes = &a.own
	}
	if a.bytes.known() {
		return a.bytes.plain != nil
	}
	buffer, _ := scratch.Get().(*[]byte)
	written, ok := r.appendTo((*buffer)[:0])
	if ok {
		a.bytes.plain = bytes.Clone(written)
	}
	if cap(written) <= mostKept {
		*buffer = written
		scratch.Put(buffer)
	}
	return ok
}

// attempt makes the attempt. It reports whether a whole answer came.
func (d *direct) attempt(ctx context.Context, v *verdict, r request, a *attempt) bool {
	if ctx.Err() != nil {
		return false // the SDK says so
	}
	if ctx == context.Context(v) {
		ctx = v.Context // the request needs no verdict, and the caller's may need no timer
	}
	limited, cancel := deadline.Until(ctx, time.Now().Add(d.timeout))
	defer cancel()
	creds, err := d.options.Credentials.Retrieve(limited)
	if err != nil {
		return false // the SDK asks again, and says it in its own words
	}
	to, err := d.endpoint(limited, &creds, r)
	if err != nil {
		return false
	}
	req, err := d.request(a.conn.traced(limited), a, r.operation(), to, &creds, newInvocation(), d.line.now())
	if err != nil || limited.Err() != nil {
		return false // too late to send it
	}

	a.made, a.before = true, v.ambiguous
	resp, err := d.line.send(req)
	if err == nil {
		a.status, a.header = resp.StatusCode, resp.Header
		a.body, a.cut = d.line.whole(resp)
	}
	a.err = err
	a.late = (a.err != nil || a.cut != nil) && limited.Err() != nil && ctx.Err() == nil
	return a.err == nil && a.cut == nil
}

var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// whole reads an answer's body to its end.
func (l *line) whole(resp *http.Response) (string, error) {
	buffer, _ := answers.Get().(*bytes.Buffer)
	buffer.Reset()
	_, err := buffer.ReadFrom(resp.Body)
	_ = resp.Body.Close() // it was read
	if err == nil {
		err = l.damage(resp.Header, buffer.Bytes())
	}
	body := buffer.String()
	if buffer.Cap() <= mostKept {
		answers.Put(buffer)
	}
	return body, err
}

// take makes an attempt the first one of the SDK's call that follows.
func (v *verdict) take(a *attempt) {
	if a.bytes.known() {
		v.bytes = a.bytes
	}
	if a.made {
		v.first = a
		// Until the SDK has read the answer: it won't, if the caller's time is over.
		v.ambiguous = v.ambiguous || !a.conn.neverHad()
	}
}

func (v *verdict) drop() { v.first, v.bytes = nil, nil }

// again is what the HTTP client returned.
func (a *attempt) again(r *http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	body := io.Reader(bytes.NewReader([]byte(a.body)))
	if a.cut != nil {
		body = io.MultiReader(body, failing{a.cut})
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(body), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
