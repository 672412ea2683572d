package lambdaidem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Request is the one form that every HTTP event is brought to.
type Request struct {
	Method string // in upper case
	Path   string // concrete path as received
	Route  string // route template without method; empty if there is none (F1)
	Query  string // raw query, without "?"
	Body   []byte // decoded, if it came as base64

	// Principal is what the gateway vouches for (F2), with its kind before it:
	// "jwt:ISS|SUB", "iam:ARN" (with the Cognito identity after it where the
	// gateway names one, since its users share a role), "authorizer:ID",
	// "cognito:ID" or "apikey:ID". Empty: it vouches for nobody. A "|" or "%"
	// within a part stands as %7C or %25.
	Principal string

	headers  func(name string) []string // canonical name in, values in order out
	nHeaders int
	// anonymous: the gateway authenticated somebody whom nothing tells apart.
	anonymous string
	malformed *Error // the event could not be decoded
}

// Values returns the values of a header in order, by its name in any case.
func (r *Request) Values(name string) []string {
	if r.headers == nil {
		return nil
	}
	return r.headers(name)
}

// contentType is no media type if several were sent.
func (r *Request) contentType() string { return strings.Join(r.Values("Content-Type"), ", ") }

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
}

// bypasses tells whether a request runs unguarded (K3, K4), and notes it.
func (g *Guard) bypasses(ctx context.Context, r *Request) bool {
	bypassed := !slices.Contains(g.opts.Methods, r.Method) ||
		g.opts.Skip != nil && g.opts.Skip(r) ||
		g.opts.KeyOptional && len(r.Values(g.opts.KeyHeader)) == 0
	if bypassed {
		runcount.Add(ctx)
		g.opts.Observer.Observe(ctx, Event{Kind: EventBypassed})
	}
	return bypassed
}

// serve takes one HTTP request through the guard. A nil response means that
// run's own answer stands, whatever it was, with the error beside it.
func (g *Guard) serve(ctx context.Context, r *Request, run func(context.Context) (Response, error)) (*Response, error) {
	who, refusal := g.identify(ctx, r)
	if refusal != nil {
		g.opts.Observer.Observe(ctx, Event{Kind: refusal.Code.kind(), Key: g.keyLabel(who.key), Err: refusal})
		return g.ownAnswer(ctx, r, refusal), nil
	}
	var (
		answer   Response // run's own, in canonical form
		replaced bool     // an error of the handler became that answer
		err      error
	)
	encode := func() ([]byte, error) { return encodeAnswer(g.kept(&answer)) }
	judge := func() ending {
		if err == nil {
			return ending{outcome: g.outcomeOf(&answer), encode: encode}
		}
		outcome := g.outcomeOfError(err)
		problem := answerOf(err, outcome)
		if problem == nil {
			return ending{outcome: outcome, err: err}
		}
		answer, replaced = *problem, true
		return ending{outcome: outcome, encode: encode, err: err}
	}
	d := g.once(ctx, call{who: who, fingerprint: g.fingerprint(r)}, func(ctx context.Context) func() ending {
		answer, err = run(ctx)
		return judge
	})
	switch {
	case d.refusal != nil:
		return g.ownAnswer(ctx, r, d.refusal), nil //nolint:nilerr // the refusal is the answer
	case d.replay != nil:
		return g.replay(ctx, r, who, d.replay), nil
	case replaced:
		return &answer, nil
	default:
		return nil, err
	}
}

// identify finds out which record a request means (F1), or why it can mean
// none (K1 to K3, F2, S2).
func (g *Guard) identify(ctx context.Context, r *Request) (identity, *Error) {
	who := identity{kind: "http", namespace: g.opts.Namespace, method: r.Method, route: r.Route}
	if isCatchAll(who.route) {
		who.kind, who.route = "path", r.Path
	}
	switch {
	case r.malformed != nil:
		return who, r.malformed
	case r.nHeaders > g.opts.MaxHeaders:
		return who, &Error{Code: ErrHeadersTooMany, Status: http.StatusRequestHeaderFieldsTooLarge,
			Detail: fmt.Sprintf("The request has %d headers; at most %d are allowed.", r.nHeaders, g.opts.MaxHeaders)}
	case len(r.Body) > g.opts.MaxBody:
		return who, bodyTooLarge(int64(g.opts.MaxBody))
	}
	values := r.Values(g.opts.KeyHeader)
	if len(values) == 0 {
		return who, &Error{Code: ErrKeyMissing, Status: http.StatusBadRequest, Detail: "This request needs the header " + g.opts.KeyHeader +
			": a value of your own that is unique to the operation and the same in every retry of it."}
	}
	key, err := parseKey(values)
	if err == nil && key == "" {
		err = errors.New("it is empty") // whatever ValidateKey allows (K3)
	}
	if err == nil {
		err = g.opts.ValidateKey(key)
	}
	if err != nil {
		return who, &Error{Code: ErrKeyInvalid, Status: http.StatusBadRequest,
			Detail: "The header " + g.opts.KeyHeader + " is invalid: " + err.Error() + "."}
	}
	who.key = key
	var refusal *Error
	who.principal, refusal = g.principal(ctx, r)
	return who, refusal
}

// principal finds out whose request it is (F2).
func (g *Guard) principal(ctx context.Context, r *Request) (string, *Error) {
	if g.opts.Principal == nil {
		if r.anonymous != "" {
			return "", &Error{Code: ErrPrincipalUnknown, Status: http.StatusForbidden,
				Detail: "The caller can't be told apart from others.",
				Err:    errors.New(r.anonymous + "; set Options.Principal")}
		}
		return r.Principal, nil
	}
	p, err := g.opts.Principal(ctx, r)
	if err == nil && p == "" && !g.opts.AnonymousCallers {
		err = errors.New("Options.Principal named nobody; set Options.AnonymousCallers if such callers may share their keys")
	}
	if err == nil {
		return p, nil
	}
	if own := (*Error)(nil); errors.As(err, &own) && own.Status != 0 {
		return "", own
	}
	return "", &Error{Code: ErrPrincipalUnknown, Status: http.StatusForbidden,
		Detail: "The caller can't be told apart from others.", Err: err}
}

func bodyTooLarge(limit int64) *Error {
	return &Error{Code: ErrBodyTooLarge, Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("The body is larger than %d bytes.", limit)}
}

// ownAnswer is an answer that the guard makes itself, after the hook (R2).
func (g *Guard) ownAnswer(ctx context.Context, r *Request, e *Error) *Response {
	resp := problem(e)
	if g.opts.OnOwnAnswer != nil {
		g.opts.OnOwnAnswer(ctx, r, resp, e)
	}
	return resp
}

// replay is the stored answer again, marked, after the hook (R1, R2).
func (g *Guard) replay(ctx context.Context, r *Request, who identity, result *Result) *Response {
	if result.Failure != nil {
		return g.ownAnswer(ctx, r, answerUnavailable(result.Failure))
	}
	resp, err := decodeAnswer(result.Value)
	if err != nil {
		e := recordForeign(err)
		g.opts.Observer.Observe(ctx, Event{Kind: EventUnreadable, Scope: who.scope(), Key: g.keyLabel(who.key), Err: err})
		return g.ownAnswer(ctx, r, e)
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
	out := *r
	out.Header = make(map[string][]string, len(r.Header))
	for name, values := range r.Header {
		out.Header[name] = values
	}
	for _, name := range g.opts.UnstoredHeaders {
		out.Del(name)
		if strings.EqualFold(name, "Set-Cookie") {
			out.Cookies = nil
		}
	}
	return &out
}

// answerOf is the answer that an error of the handler stands for, if any: the
// problem document of an *Error, and of whatever was marked as permanent (X2).
func answerOf(err error, outcome Outcome) *Response {
	if own := (*Error)(nil); errors.As(err, &own) && own.Status != 0 {
		return problem(own)
	}
	if outcome == OutcomeFailed {
		return problem(&Error{Code: ErrPermanent, Status: http.StatusInternalServerError,
			Detail: "The request failed, and would fail again if it were repeated."})
	}
	return nil
}

// problemType is where a code is explained: RFC 9457's "type".
const problemType = "https://github.com/lambdaidem/toolkit/blob/main/docs/errors.md#"

// problem is an error as an HTTP answer: a problem document of RFC 9457 with
// the code as an extension member.
func problem(e *Error) *Response {
	doc := struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
		Code   Code   `json:"code"`
	}{e.Type, http.StatusText(e.Status), e.Status, e.Detail, e.Code}
	if doc.Type == "" {
		doc.Type = "about:blank" // RFC 9457, 4.2.1: no more than the status says
		if strings.HasPrefix(string(e.Code), "idempotency_") {
			doc.Type = problemType + string(e.Code)
		}
	}
	body, err := json.Marshal(doc)
	if err != nil { // strings and a number: can't happen
		panic(err)
	}
	resp := &Response{Status: e.Status, reason: statusLine(e.Status), Body: string(body), Header: map[string][]string{"Content-Type": {"application/problem+json"}}}
	if e.RetryAfter > 0 {
		resp.Header["Retry-After"] = []string{strconv.FormatInt(wholeSeconds(e.RetryAfter), 10)}
	}
	return resp
}

// wholeSeconds rounds up: Retry-After has no fractions (RFC 9110, 10.2.3).
func wholeSeconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}
