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

// pass runs a request unguarded. The request and its response, even a stream, pass through
// unchanged until the handler enlists a database write. From then on the response is buffered,
// because it must not be sent before the enlisted writes have been committed.
func (h *guarded) pass(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if attemptOf(ctx) != nil || h.g.transact == nil { // an outer guard commits the writes, or the store can't
		h.next.ServeHTTP(w, r)
		return
	}
	a := h.g.unguarded(ctx)
	p := &passThrough{next: h.next, r: r, run: a, w: w, before: maps.Clone(w.Header())}
	work := &httpWork{g: h.g, served: p}
	d := a.runAlone(ctx, work)
	if p.buffered == nil { // the response has been sent, or is being sent
		return
	}
	seen := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, headers: headers{sent: r.Header}}
	resp, err := work.handlerResponse(ctx, seen, d)
	if err != nil {
		resp = h.g.ownAnswer(ctx, seen, conditionFailed(err))
	}
	if resp == nil {
		resp = &work.response
	}
	p.restore()
	send(w, resp)
}

// copyBack copies Pattern and MultipartForm from inside, the handler's copy of the request, to r,
// the original request: Pattern because outer handlers may log it, and MultipartForm because the
// server uses it to find and remove the temporary files of an upload.
func copyBack(r, inside *http.Request) {
	r.Pattern = inside.Pattern
	if r.MultipartForm == nil {
		r.MultipartForm = inside.MultipartForm
	}
}

// passThrough implements the interface "served" for a net/http request that runs unguarded: it
// calls the handler. If the handler enlists a write, passThrough buffers the response, so that
// httpWork can replace the response if the write fails.
type passThrough struct {
	next     http.Handler
	r        *http.Request
	run      *attempt
	w        http.ResponseWriter
	before   http.Header     // the headers that outer handlers have set
	early    http.Header     // a copy of the header of w, made when buffering began or when sync last ran
	buffered *bufferedAnswer // nil while the response goes straight to w
}

func (p *passThrough) handle(ctx context.Context) (Response, error) {
	inside := p.r.WithContext(ctx)
	defer copyBack(p.r, inside)
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

// buffers reports whether the response must be buffered, because the handler has called TxOf
// and may have enlisted a write. passThrough calls buffers before it sends each part of the
// response. If the result is false, the response goes to the client at once, and the handler
// can't enlist writes from then on.
func (p *passThrough) buffers() bool {
	if p.buffered == nil && p.run.enlist.begun(errAnswerBegan) {
		p.buffer()
	}
	p.sync()
	return p.buffered != nil
}

// buffer starts buffering the response. The buffered response begins with the header as the
// handler has changed it so far.
func (p *passThrough) buffer() {
	p.early = p.w.Header().Clone()
	p.buffered = newBufferedAnswer(p.before)
	p.buffered.header = p.w.Header().Clone()
}

// sync copies to the buffered response the changes that the handler has made to the header of
// the server's ResponseWriter. A handler that called Header before buffering began still has
// that header, and may change it at any time.
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

// response returns the buffered response, or the zero Response if the response was not
// buffered.
func (p *passThrough) response() Response {
	if !p.buffers() {
		return Response{}
	}
	return p.buffered.response()
}

// forget discards the handler's response.
func (p *passThrough) forget() {
	p.restore()
	p.buffer()
}

// restore undoes the handler's changes to the header of the server's ResponseWriter, so that
// only the headers that outer handlers have set are left. The response to send then adds its
// own headers to these.
func (p *passThrough) restore() {
	header := p.w.Header()
	clear(header)
	maps.Copy(header, p.before)
}

// writer returns the ResponseWriter for the handler. This ResponseWriter implements
// http.Flusher if the server's does, and http.Hijacker if the server's does. It implements
// http.Pusher if the server's is a Flusher and a Pusher but no Hijacker, as under HTTP/2.
// http.ResponseController calls Unwrap to find the other methods of the server's
// ResponseWriter; see passThroughController.
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

func (w passThroughWriter) Unwrap() http.ResponseWriter { return passThroughController{w} }

// passThroughController is for http.ResponseController, which calls Unwrap to look for methods
// that the handler's ResponseWriter does not have. passThroughController adds a Hijack method
// that fails while the guard buffers the response. Without this method, the ResponseController
// would unwrap further, for example through a ResponseWriter that logs, and find the Hijack of
// the server's ResponseWriter. The handler would then take over the connection, and the
// buffered response would be lost.
type passThroughController struct{ passThroughWriter }

func (w passThroughController) Unwrap() http.ResponseWriter { return w.p.w }

func (w passThroughController) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return passThroughHijacker(w.passThroughWriter).Hijack()
}

// FlushError flushes the response for http.ResponseController. It returns an error if the
// response is buffered, because nothing of it may be sent yet.
func (w passThroughWriter) FlushError() error {
	if w.p.buffers() {
		return w.p.buffered.FlushError()
	}
	return http.NewResponseController(w.p.w).Flush()
}

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
	informational := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols // an informational status does not begin the response
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
	return io.Copy(w.p.w, from) // io.Copy calls the ReadFrom method of w.p.w if there is one
}

type passThroughFlusher passThroughWriter

func (w passThroughFlusher) Flush() { _ = passThroughWriter(w).FlushError() }

type passThroughHijacker passThroughWriter

func (w passThroughHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.p.buffers() {
		return nil, nil, streamRefused("a connection that is hijacked after a write was enlisted")
	}
	return http.NewResponseController(w.p.w).Hijack()
}
