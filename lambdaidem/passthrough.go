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

// pass lets a request run unguarded. Request and answer pass through untouched,
// streams too, until the handler enlists a write: from then on the answer is kept
// back, since it may not go out before the write is there.
func (h *guarded) pass(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if attemptOf(ctx) != nil || h.g.transact == nil { // what an outer guard guards is its own
		h.next.ServeHTTP(w, r)
		return
	}
	a := h.g.unguarded(ctx)
	p := &passing{next: h.next, r: r, run: a, w: w, before: maps.Clone(w.Header())}
	work := &httpWork{g: h.g, served: p}
	d := a.runAlone(ctx, work)
	if p.kept == nil { // the answer is on its way
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

// giveBack lets the server and outer handlers see what a handler did to the copy
// of the request that it was given: an upload's files are the server's to remove.
func giveBack(r, inside *http.Request) {
	r.Pattern = inside.Pattern
	if r.MultipartForm == nil {
		r.MultipartForm = inside.MultipartForm
	}
}

// passing is a request that runs unguarded, and its answer.
type passing struct {
	next   http.Handler
	r      *http.Request
	run    *attempt
	w      http.ResponseWriter
	before http.Header // as outer handlers left it
	early  http.Header // as it was when the answer was first kept back
	kept   *keptAnswer // nil: the answer goes straight to w
}

func (p *passing) handle(ctx context.Context) (Response, error) {
	inside := p.r.WithContext(ctx)
	defer giveBack(p.r, inside)
	p.next.ServeHTTP(p.writer(), inside)
	return p.response(), nil
}

func (p *passing) answer(v any) (Response, error) {
	handler, ok := v.(http.Handler)
	if !ok {
		return Response{}, isNotTheAnswer[http.Handler](v)
	}
	handler.ServeHTTP(p.kept, p.r.WithContext(p.run.inContext(p.r.Context())))
	return p.response(), nil
}

// held reports whether the answer is kept back. If not, it is about to begin, and
// nothing can be enlisted any more.
func (p *passing) held() bool {
	if p.kept == nil && p.run.enlist.begun(errAnswerBegan) {
		p.keep()
	}
	p.sync()
	return p.kept != nil
}

// keep begins to keep the answer back, with what the handler did to the header
// until now.
func (p *passing) keep() {
	p.early = p.w.Header().Clone()
	p.kept = keepAnswer(p.before)
	p.kept.header = p.w.Header().Clone()
}

// sync takes over what the handler does to the header that it got hold of before
// the answer was kept back.
func (p *passing) sync() {
	if p.kept == nil {
		return
	}
	header := p.w.Header()
	for name, values := range header {
		if !slices.Equal(values, p.early[name]) {
			p.kept.header[name] = values
		}
	}
	for name := range p.early {
		if _, left := header[name]; !left {
			delete(p.kept.header, name)
		}
	}
	p.early = header.Clone()
}

// response returns the answer that was kept back, if it was.
func (p *passing) response() Response {
	if !p.held() {
		return Response{}
	}
	return p.kept.response()
}

// forget takes back what the handler did to the answer.
func (p *passing) forget() {
	p.restore()
	p.keep()
}

// restore makes the header what outer handlers left.
func (p *passing) restore() {
	header := p.w.Header()
	clear(header)
	maps.Copy(header, p.before)
}

// writer returns the answer's writer as the handler gets it: it flushes, hijacks and
// pushes where the server's does. What else that can do, http.ResponseController
// finds by Unwrap.
func (p *passing) writer() http.ResponseWriter {
	w := passingWriter{p}
	_, flushes := p.w.(http.Flusher)
	_, hijacks := p.w.(http.Hijacker)
	pusher, pushes := p.w.(http.Pusher)
	switch {
	case flushes && hijacks:
		return struct {
			passingWriter
			passingFlusher
			passingHijacker
		}{w, passingFlusher(w), passingHijacker(w)}
	case flushes && pushes:
		return struct {
			passingWriter
			passingFlusher
			http.Pusher
		}{w, passingFlusher(w), pusher}
	case flushes:
		return struct {
			passingWriter
			passingFlusher
		}{w, passingFlusher(w)}
	case hijacks:
		return struct {
			passingWriter
			passingHijacker
		}{w, passingHijacker(w)}
	}
	return w
}

type passingWriter struct{ p *passing }

func (w passingWriter) Unwrap() http.ResponseWriter { return w.p.w }

func (w passingWriter) Header() http.Header {
	if w.p.kept == nil && w.p.run.enlist.begun(nil) {
		w.p.keep()
	}
	if w.p.kept != nil {
		return w.p.kept.Header()
	}
	return w.p.w.Header()
}

func (w passingWriter) WriteHeader(status int) {
	informational := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols // no answer yet
	switch {
	case informational && w.p.kept == nil:
		w.p.w.WriteHeader(status)
	case w.p.held():
		w.p.kept.WriteHeader(status)
	default:
		w.p.w.WriteHeader(status)
	}
}

func (w passingWriter) Write(b []byte) (int, error) {
	if w.p.held() {
		return w.p.kept.Write(b)
	}
	return w.p.w.Write(b)
}

func (w passingWriter) ReadFrom(from io.Reader) (int64, error) {
	if w.p.held() {
		return io.Copy(struct{ io.Writer }{w.p.kept}, from)
	}
	return io.Copy(w.p.w, from) // by its own ReadFrom, if it has one
}

type passingFlusher passingWriter

func (w passingFlusher) Flush() { _ = w.FlushError() }

func (w passingFlusher) FlushError() error {
	if w.p.held() {
		return w.p.kept.FlushError()
	}
	return http.NewResponseController(w.p.w).Flush()
}

type passingHijacker passingWriter

func (w passingHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.p.held() {
		return nil, nil, streamRefused("a connection that is hijacked after a write was enlisted")
	}
	return http.NewResponseController(w.p.w).Hijack()
}
