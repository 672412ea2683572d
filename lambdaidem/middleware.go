package lambdaidem

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
)

// Middleware guards a net/http handler. It can't know who the caller is, so it panics unless
// Options.Principal or Options.AnonymousCallers is set.
//
// Register the middleware inside the mux:
//
//	mux.Handle("POST /payments", guard.Middleware(next))
//
// A record belongs to the host and the path that the client requested, before any prefix was
// stripped. If an http.ServeMux pattern has matched the whole requested path, the record belongs to
// the pattern instead of the path. A pattern that matches a whole subtree, such as "/a/" or
// "/{rest...}", does not count. Guarded handlers with the same method, host and path need guards
// with different Namespaces; see [Guard.With].
//
// Rules for the handlers around the middleware, the outer handlers:
//
//   - A retry must come to the same host. Behind proxies that change the host, let an outer handler
//     set r.Host.
//   - An outer handler must restore a body that it reads. The middleware refuses a request if some
//     of the body is missing.
//   - If a request has no Content-Length, the middleware can't tell whether some of the body is
//     missing. It refuses the request, unless the server or its mux calls the middleware directly,
//     or [Outermost] is around the outer handlers.
//   - Put http.TimeoutHandler around the middleware, not inside it. Inside, it would respond with
//     503 while the handler still runs, and this 503 would count as the handler's response.
//
// The handler's response is sent after it has been stored, with its trailers. Informational
// responses (1xx) are not sent. A stream can't be stored, so Flush and Hijack return an error. For
// a replay, outer handlers run again and set their headers, and the middleware repeats the changes
// that the handler made to those headers.
//
// A request that runs unguarded, for example because of Options.Skip, passes through unchanged, and
// so does its response unless the handler enlists a write. Options.Skip and Options.Key may look at
// the body, so the middleware reads the body before it calls them. The handler still receives the
// whole body.
//
// If the store has transactions, the handler of an unguarded request gets a wrapped ResponseWriter.
// Once the handler enlists a write, the wrapper buffers the response, so that it is not sent before
// the write is committed. With the wrapper, http.MaxBytesReader can't ask the server to close the
// connection.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	if g.opts.Principal == nil && !g.opts.AnonymousCallers {
		panic("lambdaidem: Middleware: set Options.Principal, or Options.AnonymousCallers if callers need not be told apart")
	}
	return &guarded{g, next}
}

// guarded is the http.Handler that Middleware returns. It is used by pointer, so that
// isFirst can compare it with the server's handler.
type guarded struct {
	g    *Guard
	next http.Handler
}

func (h *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g, ctx := h.g, r.Context()
	if g.passes(strings.ToUpper(r.Method), r.Header) {
		g.bypassed(ctx)
		h.pass(w, r) // without reading the body
		return
	}
	req := h.readRequest(r)
	if g.bypasses(ctx, req) {
		if r.Body != nil { // restore the body: the part that was read, and the rest
			whole := io.MultiReader(bytes.NewReader(req.Body), r.Body)
			r = r.WithContext(ctx)
			r.Body = struct {
				io.Reader
				io.Closer
			}{whole, r.Body}
		}
		h.pass(w, r)
		return
	}
	call := &httpCall{h: h, w: w, r: r, request: req}
	resp, err := g.serve(ctx, req, &httpWork{g: g, served: call})
	switch { // a net/http handler returns no error, so err is a refusal or comes from a rejected transaction
	case err == nil:
	case attemptOf(ctx) != nil: // a guarded handler made this request; see Guard.refuse
		resp = g.ownAnswer(ctx, req, innerRefused(err))
	default: // the transaction was rejected
		resp = g.ownAnswer(ctx, req, conditionFailed(err))
	}
	if resp == nil {
		resp = &call.response
	}
	send(w, resp)
}

// httpCall implements the interface "served" for a net/http request: it calls the handler
// and keeps the handler's response.
type httpCall struct {
	h        *guarded
	w        http.ResponseWriter
	r        *http.Request
	request  *Request // the request as the guard has read it, with its body
	run      *attempt // the attempt that runs the handler; nil before the handler runs
	response Response // the handler's response
}

// serve calls a handler and returns its response.
func (c *httpCall) serve(ctx context.Context, handler http.Handler) (Response, error) {
	buffered := newBufferedAnswer(c.w.Header())
	inside := inner(ctx, c.r, c.request)
	defer copyBack(c.r, inside)
	handler.ServeHTTP(buffered, inside)
	c.response = buffered.response()
	return c.response, nil
}

func (c *httpCall) handle(ctx context.Context) (Response, error) {
	c.run = runOf(ctx)
	return c.serve(ctx, c.h.next)
}

// answer calls v, the http.Handler that the guarded handler passed to the function Answer, and
// returns the response that v writes. If v is not an http.Handler, answer returns an error.
func (c *httpCall) answer(v any) (Response, error) {
	if handler, ok := v.(http.Handler); ok {
		// The context of the guarded handler may have ended, so call v with the context of the
		// client's request, to which inContext adds the attempt.
		return c.serve(c.run.inContext(c.r.Context()), handler)
	}
	return Response{}, isNotTheAnswer[http.Handler](v)
}

func (c *httpCall) forget() { c.response = Response{} }

// readRequest returns the request that the client sent, with its body. If a part of the
// request can't be read or is invalid, readRequest sets Request.malformed to the error.
func (h *guarded) readRequest(r *http.Request) *Request {
	req := &Request{Method: strings.ToUpper(r.Method), headers: headers{header: r.Header}}
	for _, values := range r.Header {
		req.nHeaders += len(values)
	}
	reqTarget, refusal := targetOf(r)
	if refusal != nil {
		req.malformed = refusal
	}
	req.Path, req.Query = reqTarget.path, reqTarget.query
	if req.Host, req.Route = routeOf(r, reqTarget); req.Host == "" {
		req.Host = reqTarget.host
	}
	if req.Body, refusal = h.readBody(r, reqTarget); refusal != nil && req.malformed == nil {
		req.malformed = refusal
	}
	return req
}

// inner returns the request for the handler: a copy of r with the given context. Its body is that
// of parsed, because the guard has already read r.Body.
func inner(ctx context.Context, r *http.Request, parsed *Request) *http.Request {
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(parsed.Body))
	return r
}
