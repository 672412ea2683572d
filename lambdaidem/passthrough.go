package lambdaidem

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
)

// pass lets a request run unguarded. The request and its answer pass through unchanged, even
// streams, until the handler enlists a write. From then on the answer is buffered, because it
// must not be sent before the write has been made.
func (h *guarded) pass(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if attemptOf(ctx) != nil || h.g.transact == nil { // an outer guard commits what its handler enlists
		h.next.ServeHTTP(w, r)
		return
	}
	a := h.g.unguarded(ctx)
	p := &passThrough{next: h.next, r: r, run: a, w: w, before: maps.Clone(w.Header())}
	work := &httpWork{g: h.g, served: p}
	d := a.runAlone(ctx, work)
	if p.buffered == nil { // the answer has been sent, or is being sent
		return
	}
	seen := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, headers: headers{sent: r.Header}}
	resp, err := work.own(ctx, seen, d)
	if err != nil {
		resp = h.g.ownAnswer(ctx, seen, conditionFailed(err))
	}
	if resp == nil {
		resp = &work.response
	}
	p.restore()
	send(w, resp)
}

// giveBack copies to r what a handler did to its copy of the request. The server needs it to
// remove the files of an upload, and outer handlers may log the pattern.
func giveBack(r, inside *http.Request) {
	r.Pattern = inside.Pattern
	if r.MultipartForm == nil {
		r.MultipartForm = inside.MultipartForm
	}
}

// passThrough is an unguarded net/http request and its answer.
type passThrough struct {
	next     http.Handler
	r        *http.Request
	run      *attempt
	w        http.ResponseWriter
	before   http.Header     // the header that outer handlers left
	early    http.Header     // the header when buffering began, or when sync last looked at it
	buffered *bufferedAnswer // nil if the answer goes straight to w
}

func (p *passThrough) handle(ctx context.Context) (Response, error) {
	inside := p.r.WithContext(ctx)
	defer giveBack(p.r, inside)
	p.next.ServeHTTP(p.writer(), inside)
	return p.response(), nil
}

func (p *passThrough) answer(v any) (Response, error) {
	handler, ok := v.(http.Handler)
	if !ok {
		return Response{}, isNotTheAnswer[http.Handler](v)
	}
	handler.ServeHTTP(p.buffered, p.r.WithContext(p.run.inContext(p.r.Context())))
	return p.response(), nil
}

// buffers is called before the answer begins, and reports whether to buffer it. If it returns
// false, nothing can be enlisted any more.
func (p *passThrough) buffers() bool {
	if p.buffered == nil && p.run.enlist.begun(errAnswerBegan) {
		p.buffer()
	}
	p.sync()
	return p.buffered != nil
}

// buffer begins to buffer the answer. What the handler did to the header so far is kept.
func (p *passThrough) buffer() {
	p.early = p.w.Header().Clone()
	p.buffered = newBufferedAnswer(p.before)
	p.buffered.header = p.w.Header().Clone()
}

// sync copies to the buffered answer what the handler did to the header that it got before
// buffering began.
func (p *passThrough) sync() {
	if p.buffered == nil {
		return
	}
	header := p.w.Header()
	for name, values := range header {
		if !slices.Equal(values, p.early[name]) {
			p.buffered.header[name] = values
		}
	}
	for name := range p.early {
		if _, left := header[name]; !left {
			delete(p.buffered.header, name)
		}
	}
	p.early = header.Clone()
}

// response returns the buffered answer; the zero Response if it was not buffered.
func (p *passThrough) response() Response {
	if !p.buffers() {
		return Response{}
	}
	return p.buffered.response()
}

// forget discards the handler's answer.
func (p *passThrough) forget() {
	p.restore()
	p.buffer()
}

// restore resets the header to what outer handlers left.
func (p *passThrough) restore() {
	header := p.w.Header()
	clear(header)
	maps.Copy(header, p.before)
}

// writer returns the handler's ResponseWriter. It is a Flusher, Hijacker and Pusher if the
// server's is. http.ResponseController finds other methods of the server's by Unwrap.
func (p *passThrough) writer() http.ResponseWriter {
	w := passThroughWriter{p}
	_, flushes := p.w.(http.Flusher)
	_, hijacks := p.w.(http.Hijacker)
	pusher, pushes := p.w.(http.Pusher)
	switch {
	case flushes && hijacks:
		return struct {
			passThroughWriter
			passThroughFlusher
			passThroughHijacker
		}{w, passThroughFlusher(w), passThroughHijacker(w)}
	case flushes && pushes:
		return struct {
			passThroughWriter
			passThroughFlusher
			http.Pusher
		}{w, passThroughFlusher(w), pusher}
	case flushes:
		return struct {
			passThroughWriter
			passThroughFlusher
		}{w, passThroughFlusher(w)}
	case hijacks:
		return struct {
			passThroughWriter
			passThroughHijacker
		}{w, passThroughHijacker(w)}
	}
	return w
}

type passThroughWriter struct{ p *passThrough }

func (w passThroughWriter) Unwrap() http.ResponseWriter { return w.p.w }

func (w passThroughWriter) Header() http.Header {
	if w.p.buffered == nil && w.p.run.enlist.begun(nil) {
		w.p.buffer()
	}
	if w.p.buffered != nil {
		return w.p.buffered.Header()
	}
	return w.p.w.Header()
}

func (w passThroughWriter) WriteHeader(status int) {
	informational := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols // the answer has not begun
	switch {
	case informational && w.p.buffered == nil:
		w.p.w.WriteHeader(status)
	case w.p.buffers():
		w.p.buffered.WriteHeader(status)
	default:
		w.p.w.WriteHeader(status)
	}
}

func (w passThroughWriter) Write(b []byte) (int, error) {
	if w.p.buffers() {
		return w.p.buffered.Write(b)
	}
	return w.p.w.Write(b)
}

func (w passThroughWriter) ReadFrom(from io.Reader) (int64, error) {
	if w.p.buffers() {
		return io.Copy(struct{ io.Writer }{w.p.buffered}, from)
	}
	return io.Copy(w.p.w, from) // uses its ReadFrom, if it has one
}

type passThroughFlusher passThroughWriter

func (w passThroughFlusher) Flush() { _ = w.FlushError() }

func (w passThroughFlusher) FlushError() error {
	if w.p.buffers() {
		return w.p.buffered.FlushError()
	}
	return http.NewResponseController(w.p.w).Flush()
}

type passThroughHijacker passThroughWriter

func (w passThroughHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.p.buffers() {
		return nil, nil, streamRefused("a connection that is hijacked after a write was enlisted")
	}
	return http.NewResponseController(w.p.w).Hijack()
}
