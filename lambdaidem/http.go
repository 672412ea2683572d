package lambdaidem

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Request is an HTTP request, whichever kind of event or server it came from.
type Request struct {
	Method string // in upper case
	Host   string // the host of a net/http request, in lower case; empty for events
	Path   string // the path that the client requested, with its original escaping
	Route  string // route template without method; empty if there is none
	Query  string // raw query, without "?"
	Body   []byte // decoded, if the event had it as base64

	// Principal is the caller whom the gateway has authenticated, after a prefix that
	// says how: "jwt:ISS|SUB", "iam:ARN", "authorizer:ID", "cognito:ID",
	// "mtls:SUBJECT|ISSUER" or "apikey:ID". After an ARN that many Cognito users
	// share, the Cognito identity follows if the gateway names it. Principal is empty
	// if the gateway has authenticated nobody. A "|" or "%" within a part is written
	// as %7C or %25.
	Principal string

	headers  headers
	nHeaders int
	// anonymous is not empty if the gateway has authenticated the caller, but nothing
	// distinguishes that caller from others.
	anonymous string
	malformed *Error      // why the event can't be decoded; nil if it can
	derived   *derivedKey // the result of Options.Key; nil before the call
}

// Values returns the values of a header in order, by its name in any case.
func (r *Request) Values(name string) []string { return r.headers.appendTo(nil, name) }

// contentType returns the Content-Type header. Several values are joined by commas, so
// that the result is not a valid media type.
func (r *Request) contentType() string {
	var room [1]string
	return strings.Join(r.headers.appendTo(room[:0], "Content-Type"), ", ")
}

// Response is an HTTP response, whichever kind of event or server it is for.
type Response struct {
	Status int
	// Header maps the name of each header, in the case that the handler used, to its
	// values in order.
	Header  map[string][]string
	Cookies []string // Set-Cookie values of an event that has them apart from Header
	Body    string   // base64 text if Base64 is true, else the bytes themselves
	Base64  bool

	reason string // status line of a response for an ALB, as the handler wrote it
	policy Policy // the guard's policy, for DefaultOutcome
	// beside has values of a REST API response from Headers whose names are also in
	// MultiValueHeaders, in any case. The gateway decides how to combine the two, so
	// both are stored as the handler wrote them.
	beside map[string]string
	// The handler of a net/http response shares the header with outer handlers. added
	// has the names of headers to which the handler appended values after those of
	// outer handlers, removed the names of outer handlers' headers that it deleted,
	// and trailer the trailers, which are set after the body.
	added, removed []string
	trailer        map[string][]string
}

// Set replaces every value of a header, by its name in any case.
func (r *Response) Set(name, value string) {
	r.Del(name)
	if r.Header == nil {
		r.Header = make(map[string][]string)
	}
	r.Header[name] = []string{value}
}

// Del removes every value of a header, by its name in any case.
func (r *Response) Del(name string) {
	for have := range r.Header {
		if strings.EqualFold(have, name) {
			delete(r.Header, have)
		}
	}
	for have := range r.beside {
		if strings.EqualFold(have, name) {
			delete(r.beside, have)
		}
	}
	r.added = slices.DeleteFunc(r.added, func(have string) bool { return strings.EqualFold(have, name) })
}

// bypasses reports whether a request runs unguarded. If so, it sends EventBypassed.
func (g *Guard) bypasses(ctx context.Context, r *Request) bool {
	bypassed := g.passes(r.Method, r) || g.opts.Skip != nil && g.opts.Skip(r) || g.keyless(ctx, r)
	if bypassed {
		g.bypassed(ctx)
	}
	return bypassed
}

// passes reports whether the method, in upper case, and the header alone show that a
// request runs unguarded.
func (g *Guard) passes(method string, header interface{ Values(name string) []string }) bool {
	return g.off || !slices.Contains(g.opts.Methods, method) ||
		g.opts.KeyOptional && g.opts.Key == nil && len(header.Values(g.opts.KeyHeader)) == 0
}

// outOfBounds returns the error for a request that can't be decoded or exceeds a limit,
// or nil.
func (g *Guard) outOfBounds(r *Request) *Error {
	if size := len(r.Host) + len(r.Path) + len(r.Route) + len(r.Query); size > g.opts.MaxURI {
		return uriTooLong(size, g.opts.MaxURI)
	}
	switch {
	case r.malformed != nil:
		return r.malformed
	case r.nHeaders > g.opts.MaxHeaders:
		return headersTooMany(r.nHeaders, g.opts.MaxHeaders)
	case len(r.Body) > g.opts.MaxBody:
		return bodyTooLarge(int64(g.opts.MaxBody))
	}
	return nil
}

// served is the user's handler, bound to one HTTP request.
type served interface {
	handle(context.Context) (Response, error)
	// answer converts the argument of Answer to a response, as if the handler had
	// returned v.
	answer(v any) (Response, error)
	// forget discards the handler's response, because the enlisted writes were not
	// made.
	forget()
}

// serve runs one HTTP request under the guard. If the returned response is nil, the
// caller sends what the handler returned, with the returned error.
func (g *Guard) serve(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	who, kind, refusal := g.identify(ctx, r)
	if refusal != nil {
		g.refused(ctx, who, kind, refusal)
		return g.ownAnswer(ctx, r, refusal), nil
	}
	d := g.once(ctx, g.requestCall(who, r), w)
	if d.replays {
		return w.again(ctx, r, d), nil
	}
	return w.own(ctx, r, d)
}

// pass runs one HTTP request unguarded. Its results are those of serve.
func (g *Guard) pass(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	w.errorStands = true
	switch {
	case attemptOf(ctx) != nil: // an outer guard commits what its handler enlists, and judges its errors by their marks
		w.run(ctx)
		return nil, w.err
	case g.transact == nil: // there is nothing to commit
		w.run(ctx)
		return w.own(ctx, r, decision{})
	}
	return w.own(ctx, r, g.bypass(ctx, w))
}

// httpWork implements work for one HTTP request.
type httpWork struct {
	served
	g        *Guard
	attempt  *attempt  // whose handler this is; nil if it runs unguarded
	response Response  // what the handler returned, or the problem document for its error
	replayed *Response // the stored response to replay
	replaced bool      // response is a problem document that replaces the handler's error
	err      error
	// errorStands is set if the handler runs unguarded: its error is then returned to
	// the server as it is, and not replaced by a problem document, unless it is an Error.
	errorStands bool
}

func (w *httpWork) run(ctx context.Context) {
	w.attempt = attemptOf(ctx)
	w.response, w.err = w.handle(ctx)
	w.answered()
}

// answered replaces an Answer by the response that it stands for.
func (w *httpWork) answered() {
	if a, ok := w.err.(*answerError); ok { //nolint:errorlint // an error that wraps an Answer is an ordinary error
		w.response, w.err = w.answer(a.v)
	}
}

func (w *httpWork) rejected(err error) ending {
	w.response, w.err, w.errorStands = Response{}, err, false
	w.forget()
	w.answered()
	return w.ending()
}

func (w *httpWork) ending() ending {
	w.replaced = false
	if w.err == nil {
		status := w.response.Status
		end := ending{success: 200 <= status && status < 400, encoded: true}
		end.outcome, end.changed = w.attempt.settle(w.g.outcomeOf(&w.response), end.success)
		if end.outcome == OutcomeReleased || end.outcome == OutcomeUncertain {
			end.err = failedStatus(status)
		}
		return end
	}
	outcome, changed := w.attempt.settle(w.g.outcomeOfError(w.err), false)
	end := ending{outcome: outcome, err: w.err, changed: changed}
	problem := w.g.answerOf(w.err, outcome)
	if problem == nil || w.errorStands {
		return end
	}
	w.response, w.replaced, end.encoded = *problem, true, true
	return end
}

// own returns the results of serve for a request whose handler has run: nil for the
// handler's response, or the response that replaces it.
func (w *httpWork) own(ctx context.Context, r *Request, d decision) (*Response, error) {
	switch {
	case d.refusal != nil:
		return w.g.ownAnswer(ctx, r, d.refusal), nil //nolint:nilerr // the refusal is the answer
	case w.replaced:
		return &w.response, nil
	case clientError(w.err) != nil:
		return problem(clientError(w.err)), nil //nolint:nilerr // the problem document is the answer
	default:
		return nil, w.err
	}
}

func (w *httpWork) encode() ([]byte, error) { return encodeAnswer(w.g.kept(&w.response)), nil }

// identify returns the identity of a request's record. If the request is refused,
// because its key or its caller is missing or invalid or it exceeds a limit, identify
// returns the refusal, the kind of event to report, and the known parts of the identity
// for that event.
func (g *Guard) identify(ctx context.Context, r *Request) (Identity, Kind, *Error) {
	who := Identity{Namespace: g.opts.Namespace, Tenant: tenantOf(ctx), Method: r.Method, Host: r.Host, Route: r.Route, Path: r.Path}
	who.settle()
	if g.opts.Principal == nil {
		who.Principal = r.Principal
	}
	refusal := g.outOfBounds(r)
	if refusal != nil && g.opts.Key != nil {
		return who, refusal.Code.kind(), refusal
	}
	key, invalid := g.keyOf(ctx, r)
	switch who.Key = key; {
	case refusal != nil:
		return who, refusal.Code.kind(), refusal
	case invalid != nil:
		return who, keyKind(invalid), invalid
	}
	who.Principal, refusal = g.principal(ctx, r)
	return who, EventNoPrincipal, refusal
}

func (w *httpWork) replay(d decision) (err error) {
	if d.failure == nil {
		w.replayed, err = w.g.decoded(d)
	}
	return err
}

// again returns the stored response with Options.ReplayMarks added, after calling
// Options.OnReplay.
func (w *httpWork) again(ctx context.Context, r *Request, d decision) *Response {
	g, resp := w.g, w.replayed
	if d.failure != nil {
		return g.ownAnswer(ctx, r, answerUnavailable(d.failure))
	}
	if resp.Header == nil {
		resp.Header = make(map[string][]string) // for the hook to write to
	}
	for _, m := range g.opts.ReplayMarks {
		resp.Set(m.Name, m.Value)
	}
	if g.opts.OnReplay != nil {
		g.opts.OnReplay(ctx, r, resp)
	}
	return resp
}

// kept returns a response without Options.UnstoredHeaders.
func (g *Guard) kept(r *Response) *Response {
	if len(g.opts.UnstoredHeaders) == 0 {
		return r
	}
	out := *r // a copy: the first response is sent with these headers
	out.Header, out.beside, out.trailer = maps.Clone(r.Header), maps.Clone(r.beside), maps.Clone(r.trailer)
	out.added, out.removed = slices.Clone(r.added), slices.Clone(r.removed)
	for _, name := range g.opts.UnstoredHeaders {
		out.Del(name)
		out.removed = slices.DeleteFunc(out.removed, func(have string) bool { return strings.EqualFold(have, name) })
		for have := range out.trailer {
			if strings.EqualFold(strings.TrimPrefix(have, http.TrailerPrefix), name) {
				delete(out.trailer, have)
			}
		}
		if strings.EqualFold(name, "Set-Cookie") {
			out.Cookies = nil
		}
	}
	return &out
}
