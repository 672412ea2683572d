package lambdaidem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Middleware guards a net/http handler. It can't know who the caller is, so it panics unless
// Options.Principal or Options.AnonymousCallers is set.
//
// The middleware belongs inside the mux:
//
//	mux.Handle("POST /payments", guard.Middleware(next))
//
// The record of a request belongs to the host and the path that the client asked for, before
// any prefix was stripped. If an http.ServeMux matched a pattern without a subtree, and the
// pattern fits the whole path that the client asked for, the pattern stands in for the path.
// A retry must come to the same host. Behind proxies that change the host, let an outer
// handler set r.Host. If a handler chooses between two guarded handlers by something else,
// such as a header, give each a guard with a Namespace of its own; see [Guard.With].
//
// The middleware must know the whole body. It refuses a request if an outer handler has read
// some of the body. It also refuses a body without a Content-Length, unless the server or its
// mux calls the middleware directly. [Outermost] helps if outer handlers read nothing, or
// give back what they have read.
//
// The handler's answer is sent when it has been stored. The client gets the same answer as
// without the guard, first and in a replay: headers of outer handlers are set by them anew,
// changes that the handler made to those headers are repeated, and trailers are stored.
// Informational responses (1xx) are not sent. A stream can't be stored, so Flush and Hijack
// return an error. http.TimeoutHandler belongs outside the middleware; inside, it would
// answer 503 while the handler still runs.
//
// A request that is not guarded passes through untouched, and so does its answer. Its body is
// read first if Options.Skip is set, or Options.Key together with Options.KeyOptional, and the
// handler still gets all of it. With a store that has transactions the handler of such a
// request can enlist writes. It gets a ResponseWriter that wraps the server's, so
// http.MaxBytesReader can't ask the server to close the connection.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	if g.opts.Principal == nil && !g.opts.AnonymousCallers {
		panic("lambdaidem: Middleware: set Options.Principal, or Options.AnonymousCallers if callers need not be told apart")
	}
	return &guarded{g, next}
}

// guarded is a handler behind a guard. Middleware returns a pointer to it, which isFirst can
// compare with the server's handler.
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
		if r.Body != nil { // the part that was read, and the rest
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
	call := &httpCall{h: h, w: w, r: r, read: req}
	resp, err := g.serve(ctx, req, &httpWork{g: g, served: call})
	if err != nil { // a net/http handler returns no error: a transaction was rejected
		resp = g.ownAnswer(ctx, req, conditionFailed(err))
	}
	if resp == nil {
		resp = &call.own
	}
	send(w, resp)
}

// httpCall is a call of the handler behind a guard.
type httpCall struct {
	h    *guarded
	w    http.ResponseWriter
	r    *http.Request
	read *Request
	run  *attempt // nil before the handler runs
	own  Response // the handler's answer
}

// serve calls a handler and returns its answer.
func (c *httpCall) serve(ctx context.Context, handler http.Handler) (Response, error) {
	kept := newBufferedAnswer(c.w.Header())
	inside := inner(ctx, c.r, c.read)
	defer giveBack(c.r, inside)
	handler.ServeHTTP(kept, inside)
	c.own = kept.response()
	return c.own, nil
}

func (c *httpCall) handle(ctx context.Context) (Response, error) {
	c.run = runOf(ctx)
	return c.serve(ctx, c.h.next)
}

// answer calls the http.Handler that was given to Answer. The guarded handler's context has
// ended. The context here has the same values, and ends when the request's does.
func (c *httpCall) answer(v any) (Response, error) {
	if handler, ok := v.(http.Handler); ok {
		return c.serve(c.run.inContext(c.r.Context()), handler)
	}
	return Response{}, isNotTheAnswer[http.Handler](v)
}

func (c *httpCall) forget() { c.own = Response{} }

// readRequest returns the Request that the client sent.
func (h *guarded) readRequest(r *http.Request) *Request {
	req := &Request{Method: strings.ToUpper(r.Method), headers: headers{sent: r.Header}}
	for _, values := range r.Header {
		req.nHeaders += len(values)
	}
	asked, refusal := targetOf(r)
	if refusal != nil {
		req.malformed = refusal
	}
	req.Path, req.Query = asked.path, asked.query
	if req.Host, req.Route = routeOf(r, asked); req.Host == "" {
		req.Host = asked.host
	}
	if req.Body, refusal = h.readBody(r, asked); refusal != nil && req.malformed == nil {
		req.malformed = refusal
	}
	return req
}

// readBody reads the whole body, or enough of it to know that it is too large. A body that is
// not whole is refused, because it could equal another one.
func (h *guarded) readBody(r *http.Request, asked target) ([]byte, *Error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(r.Body, int64(h.g.opts.MaxBody)+1))
		switch bound := (*http.MaxBytesError)(nil); {
		case errors.As(err, &bound):
			return body, bodyTooLarge(bound.Limit)
		case err != nil:
			return body, requestInvalid("The body could not be read to its end.", err)
		case len(body) > h.g.opts.MaxBody:
			return body, bodyTooLarge(int64(h.g.opts.MaxBody))
		}
	}
	switch sent := bodyLength(r, isFirst(r, asked, h)); {
	case sent == int64(len(body)), sent == unread:
		return body, nil
	case sent < 0:
		return body, bodyUnknown(http.StatusLengthRequired, "The request has no Content-Length, so it can't be told here whether its body is whole.",
			errors.New("the body's length is unknown, and handlers outside of the guard may have read some of it: "+
				"put lambdaidem.Outermost around the outermost handler"))
	default:
		return body, bodyUnknown(http.StatusInternalServerError, "The body was read before the guard could compare it.",
			fmt.Errorf("an outer handler read or replaced the body, of which %d bytes are left: put the guard outside of that handler, "+
				"or have it give the body back with r.ContentLength to match", len(body)))
	}
}

// inner returns the request for the handler, with a copy of the body.
func inner(ctx context.Context, r *http.Request, read *Request) *http.Request {
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(read.Body))
	return r
}
