package lambdaidem

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Request is an HTTP request, regardless of the kind of event or server that it came from.
type Request struct {
	Method string // in upper case
	Host   string // the host of a net/http request, in lower case; empty for events
	Path   string // the path that the client requested, escaped as it was sent; HTTP APIs decode it
	Route  string // route template without method; empty if there is none
	Query  string // raw query, without "?"
	Body   []byte // decoded if the event had it as base64

	// Principal is the caller that the gateway has authenticated, after a prefix that says
	// how: "jwt:ISS|SUB", "iam:ARN", "authorizer:ID", "cognito:ID", "mtls:SUBJECT|ISSUER"
	// or "apikey:ID". If many Cognito users share the ARN and the gateway names the Cognito
	// identity, the identity follows: "iam:ARN|IDENTITY". Principal is empty if the gateway
	// has authenticated nobody. A "|" or "%" within a part is written as %7C or %25.
	Principal string

	headers  headers
	nHeaders int // number of headers, to compare with Options.MaxHeaders
	// anonymous is set if the gateway has authenticated the caller, but the event doesn't
	// identify the caller, so that Principal is empty. It then says what the event lacks.
	anonymous string
	malformed *Error      // why the event could not be decoded; nil if it could
	derived   *derivedKey // the result of Options.Key; nil until the guard has called it
}

// Values returns the values of a header in their order. Case does not matter in name. The
// events of HTTP APIs and function URLs list cookies separately from the headers. Values
// joins these cookies with "; " and returns them as one value of "Cookie".
func (r *Request) Values(name string) []string { return r.headers.appendTo(nil, name) }

// contentType returns the Content-Type header. If the request has several, contentType joins
// them with commas. The result is then not a valid media type, so it does not count as JSON.
func (r *Request) contentType() string {
	var room [1]string
	return strings.Join(r.headers.appendTo(room[:0], "Content-Type"), ", ")
}

// Response is an HTTP response, regardless of the kind of event or server that it is for.
type Response struct {
	Status int
	// Header maps the name of each header, in the case that the handler used, to its
	// values in order.
	Header  map[string][]string
	Cookies []string // Set-Cookie values of an event that has a separate field for them; else they are in Header
	Body    string   // base64 text if Base64 is true, else the bytes of the body
	Base64  bool

	reason string // status description that a handler of ALB events wrote, such as "200 OK"
	policy Policy // the guard's policy, set for Options.Outcome so that DefaultOutcome knows it; else empty
	// beside is for responses of REST API events, which have two maps of headers. If a handler
	// sets the same header in both maps, ignoring case, beside has the value from the map Headers,
	// and Header has the values from MultiValueHeaders. Both are stored, because the gateway
	// decides how to combine them.
	beside map[string]string
	// added and removed are for net/http responses. All handlers of a request, such as middleware
	// and the guarded handler inside it, share one header map. A replay does not run the guarded
	// handler, so it must repeat that handler's changes to the map. added has the names of the
	// headers to which a replay appends values. removed has the names of the headers that a replay
	// deletes. For all other headers in the field Header, a replay replaces the values in the map.
	added, removed []string
	// trailer has the trailers of a net/http response, the headers that are sent after the body.
	trailer map[string][]string
}

// Set replaces all values of a header by one value. Case does not matter in name.
func (r *Response) Set(name, value string) {
	r.Del(name)
	if r.Header == nil {
		r.Header = make(map[string][]string)
	}
	r.Header[name] = []string{value}
}

// Del removes all values of a header. Case does not matter in name.
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

// bypasses reports whether a request runs unguarded, for example because Options.Skip says so. For
// such a request, it also sends an event: EventSwitchedOff if the guard is switched off, and
// otherwise EventBypassed.
func (g *Guard) bypasses(ctx context.Context, r *Request) bool {
	identified := false
	defer recordUnidentified(ctx, &identified)
	bypassed := g.passes(r.Method, r) || g.opts.Skip != nil && g.opts.Skip(r) || g.keyless(ctx, r)
	identified = true
	if bypassed {
		g.bypassed(ctx)
	}
	return bypassed
}

// passes reports whether a request runs unguarded for a reason that is known without its body: the
// guard is switched off, the method is not guarded, or the key is optional and the request lacks
// the header that would contain it. Middleware can then leave the body unread. Other reasons need
// the whole request; see bypasses. method must be in upper case.
func (g *Guard) passes(method string, header interface{ Values(name string) []string }) bool {
	return g.off || !slices.Contains(g.opts.Methods, method) ||
		g.opts.KeyOptional && g.opts.Key == nil && len(header.Values(g.opts.KeyHeader)) == 0
}

// outOfBounds returns an error if the request could not be decoded, or if it exceeds a
// limit such as Options.MaxBody. Otherwise it returns nil.
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

// served runs the user's handler for one HTTP request.
type served interface {
	handle(context.Context) (Response, error) // calls the handler
	// answer converts v, which the handler passed to the function Answer, to a response, as
	// if the handler had returned v.
	answer(v any) (Response, error)
	// forget discards the handler's response, because the database has refused the writes
	// that the handler enlisted.
	forget()
}

// serve handles one guarded HTTP request. It returns the response to send, or nil if the
// handler's own response is to be sent. If the error is not nil, there is no response to send:
// a guarded Lambda handler returns the error, and Middleware sends an error response.
func (g *Guard) serve(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	identified := false
	defer recordUnidentified(ctx, &identified)
	who, kind, refusal := g.identify(ctx, r)
	if refusal != nil {
		identified = true
		g.refused(ctx, who, kind, refusal)
		return g.refuse(ctx, r, refusal)
	}
	c := g.requestCall(who, r)
	c.repeated = g.opts.Repeated != nil && g.opts.Repeated(r)
	identified = true
	d := g.handleCall(ctx, c, w)
	switch {
	case d.replays && d.failure != nil: // the record has no response
		return g.refuse(ctx, r, answerUnavailable(d.failure, d.outcome))
	case d.replays:
		return w.again(ctx, r), nil
	}
	return w.handlerResponse(ctx, r, d)
}

// refuse returns the results of serve for a refused request. Normally these are the problem
// document of the refusal and no error.
//
// The exception is a refused request that another guarded handler has made. That outer handler
// might pass the problem document on to its own client. The client would then think that its own
// request was refused. If that could mislead the client, refuse returns the refusal as an error
// instead; see clientError.
func (g *Guard) refuse(ctx context.Context, r *Request, refusal *Error) (*Response, error) {
	if attemptOf(ctx) != nil && clientError(refusal) == nil {
		return nil, &passedOn{refusal, false}
	}
	return g.ownAnswer(ctx, r, refusal), nil
}

// pass runs the handler for one HTTP request unguarded. Its results have the same meaning as
// those of serve.
func (g *Guard) pass(ctx context.Context, r *Request, w *httpWork) (*Response, error) {
	w.errorStands = true
	switch {
	case attemptOf(ctx) != nil: // inside a guarded handler, whose guard commits the enlisted writes and examines the marks of the error
		w.run(ctx)
		return nil, w.err
	case g.transact == nil: // the store has no transactions, so there is nothing to commit
		w.run(ctx)
		return w.handlerResponse(ctx, r, decision{})
	}
	return w.handlerResponse(ctx, r, g.bypass(ctx, w))
}

// httpWork implements work for one HTTP request.
type httpWork struct {
	served
	g        *Guard
	attempt  *attempt  // the attempt that runs the handler; nil if the handler runs unguarded
	response Response  // what the handler returned, or the problem document for its error
	replayed *Response // the stored response; nil unless the request is replayed
	replaced bool      // response is a problem document to send instead of the handler's error
	err      error     // the error that the handler returned, or that replaces it after a rejected transaction
	// errorStands is true if the handler runs unguarded. The handler's error is then returned
	// unchanged, as without a guard. There is one exception: an *Error that the client may receive
	// becomes a problem document; see handlerResponse.
	//
	// The guard commits the database writes that an unguarded handler enlists. If none of them
	// were made, the guard replaces the handler's error, and sets errorStands to false.
	errorStands bool
}

func (w *httpWork) run(ctx context.Context) {
	w.attempt = attemptOf(ctx)
	w.response, w.err = w.handle(ctx)
	w.answered()
}

// answered checks whether the handler's error was made by the function Answer. If so, it
// replaces the error by a response made from the argument of Answer.
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
		status, tells := w.response.Status, answerOfResponse(&w.response)
		end := ending{success: tells == success, final: tells == final, encoded: true}
		end.outcome, end.changed = w.attempt.settle(w.g.outcomeOf(&w.response), tells)
		if end.outcome == OutcomeReleased || end.outcome == OutcomeUncertain {
			end.err = failedStatus(status)
		}
		return end
	}
	end := w.attempt.settleError(w.g.outcomeOfError(w.err, OutcomeFailed), w.err)
	problem := w.g.answerOf(w.err, end.outcome)
	if problem == nil || w.errorStands {
		return end
	}
	w.response, w.replaced, end.encoded = *problem, true, true
	return end
}

// handlerResponse returns the results of serve for a request that is not replayed. d is the
// decision about the request. If both results are nil, the client receives the handler's own
// response. Otherwise the Response or the error takes the place of the handler's response.
func (w *httpWork) handlerResponse(ctx context.Context, r *Request, d decision) (*Response, error) {
	switch {
	case d.refusal != nil:
		return w.g.refuse(ctx, r, d.refusal)
	case w.replaced:
		return &w.response, nil
	case clientError(w.err) != nil:
		return problem(clientError(w.err)), nil //nolint:nilerr // the problem document is the answer
	default:
		return nil, w.err
	}
}

func (w *httpWork) encode() ([]byte, error) { return encodeAnswer(w.g.toStore(&w.response)), nil }

// identify returns the identity of a request's record. If the request can't be decoded or exceeds
// a limit, or if its key or caller is missing or invalid, identify returns a refusal as the
// *Error. The guard then sends an event about the refusal. Kind is the kind of that event, and
// Identity has the parts that the event shows, as far as they are known.
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

// again makes a replay from the stored response. It adds Options.ReplayMarks, and then lets
// Options.OnReplay change the response.
func (w *httpWork) again(ctx context.Context, r *Request) *Response {
	g, resp := w.g, w.replayed
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

// toStore returns the response to store: r without the headers that Options.UnstoredHeaders
// names.
func (g *Guard) toStore(r *Response) *Response {
	if len(g.opts.UnstoredHeaders) == 0 {
		return r
	}
	out := *r // a copy, because the first caller receives r with these headers
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
