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

// Middleware guards a net/http handler. It can't know who calls, so it
// panics unless Options.Principal or Options.AnonymousCallers is set.
//
// The middleware belongs inside the mux:
//
//	mux.Handle("POST /payments", guard.Middleware(next))
//
// A record belongs to the host and the path that the client asked for, before
// any prefix was stripped from it. The http.ServeMux pattern that matched stands
// in for the path where it provably is one route: it has no subtree and fits
// what the client asked for as a whole. A retry must come to the same host;
// behind proxies that change it, have an outer handler set r.Host. Where a
// handler sends a request to one of two handlers by something else, a header
// say, give each a guard of its own: With another Namespace.
//
// The body must be known whole. One that an outer handler read some of is
// refused; so is one without a Content-Length, unless the server hands the
// request to this middleware first, by itself or by its mux. [Outermost] helps
// where handlers outside read nothing, or give back what they read.
//
// The handler's answer is kept back until it is stored. The client gets it as it
// would without the guard, at first and on a replay: headers that outer handlers
// set are theirs, and what the handler did to them is done again; trailers are
// kept. Informational answers (1xx) are not sent. A handler that flushes or
// hijacks gets an error from http.ResponseController, since a stream can't be
// stored and replayed. http.TimeoutHandler belongs outside: inside it answers 503
// while the handler still runs. A request that is not guarded, and its answer,
// pass through untouched; one that Options.Skip is asked about, or with
// Options.KeyOptional Options.Key, has its body read before, and gets it whole. With a store that has transactions the handler of such a request gets a
// writer of the guard's around the server's, so that it can enlist writes:
// http.MaxBytesReader can't ask that one to close the connection.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	if g.opts.Principal == nil && !g.opts.AnonymousCallers {
		panic("lambdaidem: Middleware: set Options.Principal, or Options.AnonymousCallers if callers need not be told apart")
	}
	return &guarded{g, next}
}

// guarded is a handler behind a guard. It is a pointer, so that it can be told
// from others: see isFirst.
type guarded struct {
	g    *Guard
	next http.Handler
}

func (h *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g, ctx := h.g, r.Context()
	if g.passes(strings.ToUpper(r.Method), r.Header) {
		g.bypassed(ctx)
		h.pass(w, r) // K3, K4: untouched, its body not even read
		return
	}
	req := h.readRequest(r)
	if g.bypasses(ctx, req) {
		if r.Body != nil { // what was read, and what may follow
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
	if err != nil { // not of the handler, which returns none: of a transaction that was rejected
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
	run  *attempt // whose handler it is; nil before that runs
	own  Response // what the handler answered
}

// serve returns what a handler answers.
func (c *httpCall) serve(ctx context.Context, handler http.Handler) (Response, error) {
	kept := keepAnswer(c.w.Header())
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

// answer calls a handler that was given to Answer. The guarded handler's context
// has ended; this one has its values, and ends with the request's.
func (c *httpCall) answer(v any) (Response, error) {
	if handler, ok := v.(http.Handler); ok {
		return c.serve(c.run.inContext(c.r.Context()), handler)
	}
	return Response{}, isNotTheAnswer[http.Handler](v)
}

func (c *httpCall) forget() { c.own = Response{} }

// readRequest brings a request to the canonical form, as the client sent it.
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

// readBody reads a body whole, or as far as it shows that it is too large.
// One that can't be known whole would pass as equal to others.
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

// inner returns the request as the handler gets it.
func inner(ctx context.Context, r *http.Request, read *Request) *http.Request {
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(read.Body))
	return r
}
