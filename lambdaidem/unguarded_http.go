package lambdaidem

import (
	"context"
	"maps"
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
	p := &passThrough{next: h.next, r: r, run: a, w: w, outer: maps.Clone(w.Header())}
	work := &httpWork{g: h.g, served: p}
	d := a.runAlone(ctx, work)
	if p.buffered == nil { // the response has been sent, or is being sent
		return
	}
	req := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, headers: headers{header: r.Header}}
	resp, err := work.handlerResponse(ctx, req, d)
	if err != nil {
		resp = h.g.ownAnswer(ctx, req, conditionFailed(err))
	}
	if resp == nil {
		resp = &work.response
	}
	p.restore()
	send(w, resp)
}

// copyBack copies Pattern and MultipartForm to r, the original request. The parameter inside is the
// copy of the request that the handler received. Outer handlers may log Pattern, and the server
// uses MultipartForm to find and remove the temporary files of an upload.
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
	outer    http.Header     // the headers that outer handlers have set
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

// buffers reports whether the response must be buffered, because the handler has called TxOf and
// may have enlisted a write. passThrough calls buffers before it sends each part of the response.
// If the result is false, that part goes to the client at once, and the handler can't enlist writes
// from then on.
func (p *passThrough) buffers() bool {
	if p.buffered == nil && !p.run.enlist.endIfUnused(errAnswerBegan) {
		p.buffer()
	}
	p.sync()
	return p.buffered != nil
}

// buffer starts buffering the response. The buffered response begins with the header as the
// handler has changed it so far.
func (p *passThrough) buffer() {
	p.early = p.w.Header().Clone()
	p.buffered = newBufferedAnswer(p.outer)
	p.buffered.header = p.w.Header().Clone()
}

// sync copies into the buffered response what the handler has changed in the header of the server's
// ResponseWriter. A handler that called Header before buffering began still holds that header, and
// may change it at any time.
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
		if _, present := header[name]; !present {
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

// restore undoes the handler's changes to the header of the server's ResponseWriter. The header
// then has only what outer handlers have set, and the function send can add the headers of the
// response.
func (p *passThrough) restore() {
	header := p.w.Header()
	clear(header)
	maps.Copy(header, p.outer)
}
