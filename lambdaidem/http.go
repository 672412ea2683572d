package lambdaidem

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Request is the one form that every HTTP event is brought to.
type Request struct {
	Method string // in upper case
	Host   string // of a net/http request, in lower case; events have none
	Path   string // concrete path as the client asked for it, escaped as it came
	Route  string // route template without method; empty if there is none (F1)
	Query  string // raw query, without "?"
	Body   []byte // decoded, if it came as base64

	// Principal is what the gateway vouches for (F2), with its kind before it:
	// "jwt:ISS|SUB", "iam:ARN" (with the Cognito identity after it where the
	// gateway names one, since its users share a role), "authorizer:ID",
	// "cognito:ID", "mtls:SUBJECT|ISSUER" or "apikey:ID". Empty: it vouches for
	// nobody. A "|" or "%" within a part stands as %7C or %25.
	Principal string

	headers  headers
	nHeaders int
	// anonymous: the gateway authenticated somebody whom nothing tells apart.
	anonymous string
	malformed *Error      // the event could not be decoded
	derived   *derivedKey // what Options.Key said; nil: it was not asked yet
}

// Values returns the values of a header in order, by its name in any case.
func (r *Request) Values(name string) []string { return r.headers.appendTo(nil, name) }

// contentType is no media type if several were sent.
func (r *Request) contentType() string {
	var room [1]string
	return strings.Join(r.headers.appendTo(room[:0], "Content-Type"), ", ")
}

// Response is the one form of every HTTP answer, stored and replayed (R1).
type Response struct {
	Status int
	// Header has the values of each header in order, under the name as the
	// handler wrote it.
	Header  map[string][]string
	Cookies []string // Set-Cookie values that an event carries apart from Header
	Body    string   // base64 text if Base64, else the bytes themselves
	Base64  bool

	reason string // status line of an ALB answer, as the handler wrote it
	policy Policy // of the guard, for DefaultOutcome
	// Of a REST API's answer: values of Headers whose names stand in
	// MultiValueHeaders too, in any case. The gateway decides what becomes of
	// both, so both are kept as they were written.
	beside map[string]string
	// Of a net/http answer: the names in Header whose values come after those
	// that outer handlers set, the headers of outer handlers that the handler
	// took away, and what was set after the body.
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

// bypasses tells whether a request runs unguarded (K3, K4), and notes it.
func (g *Guard) bypasses(ctx context.Context, r *Request) bool {
	bypassed := g.passes(r.Method, r) || g.opts.Skip != nil && g.opts.Skip(r) || g.keyless(ctx, r)
	if bypassed {
		g.bypassed(ctx)
	}
	return bypassed
}

// passes tells whether a request runs unguarded by its method, in upper case, and
// its header alone.
func (g *Guard) passes(method string, header interface{ Values(name string) []string }) bool {
	return g.off || !slices.Contains(g.opts.Methods, method) ||
		g.opts.KeyOptional && g.opts.Key == nil && len(header.Values(g.opts.KeyHeader)) == 0
}

// outOfBounds is why a request is not looked at any further (S2): it could not be
// decoded, or has too much of something.
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

// served is the user's handler of one HTTP request.
type served interface {
	handle(context.Context) (Response, error)
	// answer is what the handler would have returned, had it returned v: see
	// Answer.
	answer(v any) (Response, error)
	// forget drops what the handler returned: nothing of what it says has happened.
	forget()
}

// serve takes one HTTP request through the guard. A nil response means that
// the handler's own answer stands, whatever it was, with the error beside it.
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

// pass lets one HTTP request run unguarded (E1); it returns what serve does.
func (g *Guard) pass(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	if attemptOf(ctx) != nil || g.transact == nil { // what an outer guard guards is its own
		_, err := w.handle(ctx)
		return nil, err
	}
	w.errorStands = true
	return w.own(ctx, r, g.bypass(ctx, w))
}

// httpWork is a handler of HTTP requests, as the guard runs it.
type httpWork struct {
	served
	g        *Guard
	response Response  // the handler's own, in canonical form
	replayed *Response // the stored answer that replays
	replaced bool      // an error of the handler became that answer
	err      error
	// errorStands leaves an error of the handler's as it is: it runs unguarded.
	errorStands bool
}

func (w *httpWork) run(ctx context.Context) {
	w.response, w.err = w.handle(ctx)
	w.answered()
}

// answered takes an Answer for what it stands for.
func (w *httpWork) answered() {
	if a, ok := w.err.(*answerError); ok { //nolint:errorlint // alone: what wraps it says otherwise (X2)
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
		end := ending{outcome: w.g.outcomeOf(&w.response), success: 200 <= status && status < 400, encoded: true}
		if end.outcome == OutcomeReleased || end.outcome == OutcomeUncertain {
			end.err = failedStatus(status)
		}
		return end
	}
	outcome := w.g.outcomeOfError(w.err)
	problem := w.g.answerOf(w.err, outcome)
	if problem == nil || w.errorStands {
		return ending{outcome: outcome, err: w.err}
	}
	w.response, w.replaced = *problem, true
	return ending{outcome: outcome, encoded: true, err: w.err}
}

// own is the handler's own answer, or the guard's refusal in its place.
func (w *httpWork) own(ctx context.Context, r *Request, d decision) (*Response, error) {
	switch {
	case d.refusal != nil:
		return w.g.ownAnswer(ctx, r, d.refusal), nil //nolint:nilerr // the refusal is the answer
	case w.replaced:
		return &w.response, nil
	default:
		return nil, w.err
	}
}

func (w *httpWork) encode() ([]byte, error) { return encodeAnswer(w.g.kept(&w.response)), nil }

// identify finds out which record a request means (F1), or why it can mean
// none (K1 to K3, K5, F2, S2). With a refusal it returns what is known all the
// same, for events, and what kind of event that is.
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

// again returns the stored answer, marked, after the hook.
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

// kept is the answer without the headers that are kept out of the store (R2).
func (g *Guard) kept(r *Response) *Response {
	if len(g.opts.UnstoredHeaders) == 0 {
		return r
	}
	out := *r // the first answer keeps its own
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
