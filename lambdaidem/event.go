package lambdaidem

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// codec converts between the HTTP events of one type and the types Request and Response, which are
// the same for all events. A codec does not decide whether a response is stored: Guard.outcomeOf
// decides that in the same way for all events. The methods take pointers to events, because events
// are large.
type codec[In, Out any] interface {
	request(*In, *Request)      // fills in a zero Request from the event
	response(*In, Out) Response // converts what the handler returned for the event
	event(*In, *Response) Out   // converts a Response to what the handler would return for the event
}

// guardHTTP wraps a handler of HTTP events of one type. The first caller receives exactly
// what the handler returned. A replay is rebuilt from the stored response.
func guardHTTP[In, Out any](g *Guard, c codec[In, Out], h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		call := &eventCall[In, Out]{codec: c, handler: h, in: in}
		req := new(Request) // allocated separately from call, because a hook may retain it
		c.request(&call.in, req)
		call.work = httpWork{g: g, served: call}
		var resp *Response
		var err error
		if g.bypasses(ctx, req) {
			resp, err = g.pass(ctx, req, &call.work)
		} else {
			resp, err = g.serve(ctx, req, &call.work)
		}
		if resp != nil {
			return c.event(&call.in, resp), nil
		}
		return call.own, err
	}
}

// eventCall implements the served interface for one event. It calls the user's handler with
// the event and keeps the handler's response.
type eventCall[In, Out any] struct {
	work    httpWork
	codec   codec[In, Out]
	handler func(context.Context, In) (Out, error)
	in      In
	own     Out // what the handler returned, or the argument of Answer; zero after forget
}

func (c *eventCall[In, Out]) handle(ctx context.Context) (Response, error) {
	var err error
	if c.own, err = c.handler(ctx, c.in); err != nil {
		return Response{}, err
	}
	return c.codec.response(&c.in, c.own), nil
}

func (c *eventCall[In, Out]) answer(v any) (Response, error) {
	var ok bool
	if c.own, ok = v.(Out); !ok {
		return Response{}, isNotTheAnswer[Out](v)
	}
	return c.codec.response(&c.in, c.own), nil
}

func (c *eventCall[In, Out]) forget() { c.own = *new(Out) }

// setBody sets r.Body to the body of an event, and decodes it if isBase64 is true. If the
// body is not valid base64, setBody stores the error in r.malformed. The guard then refuses
// the request, unless the request runs unguarded.
func (r *Request) setBody(body string, isBase64 bool) {
	if !isBase64 {
		r.Body = []byte(body)
		return
	}
	var err error
	if r.Body, err = base64.StdEncoding.DecodeString(body); err != nil {
		r.malformed = requestInvalid("The body is marked as base64 and is not.", err)
	}
}

// headers has the headers of a request, in the form in which they arrived.
type headers struct {
	sent http.Header // headers of a net/http request; nil for an event

	// multi has every value of each header of an event.
	multi map[string][]string
	// single has one value of each header of an event. appendTo uses single only for names that
	// multi does not have. In an event that has only single, the value of a repeated header
	// depends on the gateway. A load balancer keeps only the last value. Every other gateway joins
	// the values with commas.
	single map[string]string

	// cookies has the cookies of an event in payload format 2.0, which has no Cookie header
	// (API Gateway, "Create AWS Lambda proxy integrations for HTTP APIs").
	cookies []string
}

// appendTo appends the values of the named header to values. Case does not matter. If the
// event has the name in several capitalizations, appendTo visits them in sorted order. The
// order of a map is random, but equal events must yield equal values.
func (h *headers) appendTo(values []string, name string) []string {
	if h.sent != nil {
		return append(values, h.sent.Values(name)...)
	}
	none := len(values)
	one, several := spellings(h.multi, name)
	values = append(values, h.multi[one]...)
	for _, have := range several {
		values = append(values, h.multi[have]...)
	}
	if len(values) > none {
		return values
	}
	one, several = spellings(h.single, name)
	if v, ok := h.single[one]; ok {
		values = append(values, v)
	}
	for _, have := range several {
		values = append(values, h.single[have])
	}
	if len(h.cookies) > 0 && strings.EqualFold(name, "Cookie") {
		values = append(values, strings.Join(h.cookies, "; "))
	}
	return values
}

// spellings returns the keys of a map that equal name except for case, in sorted order: the
// first key, and the others, if there are any. If the map has no such key, first is name.
func spellings[V any](of map[string]V, name string) (first string, others []string) {
	first, found := name, false
	for have := range of {
		switch {
		case !strings.EqualFold(have, name):
			continue
		case found:
			others = append(others, max(first, have))
			first = min(first, have)
		default:
			first, found = have, true
		}
	}
	slices.Sort(others)
	return first, others
}

// queryOf returns the parameters of an event as a query string, sorted by name. Values of
// one name keep their order. If escape is true, queryOf escapes the parameters. The caller
// sets escape if the gateway has decoded them.
func queryOf(multi map[string][]string, single map[string]string, escape bool) string {
	if len(multi) == 0 && len(single) > 0 {
		multi = make(map[string][]string, len(single))
		for name, v := range single {
			multi[name] = []string{v}
		}
	}
	names := make([]string, 0, len(multi))
	for name := range multi {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		for _, v := range multi[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			if escape {
				b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(v))
				continue
			}
			b.WriteString(name + "=" + v)
		}
	}
	return b.String()
}

// withCookies returns the headers of a response, with its cookies added as Set-Cookie
// headers. It is for events whose responses have no separate field for cookies.
func withCookies(r *Response) map[string][]string {
	if len(r.Cookies) == 0 {
		return r.Header
	}
	all := make(map[string][]string, len(r.Header)+1)
	name := ""
	for have, vs := range r.Header {
		switch {
		case !strings.EqualFold(have, "Set-Cookie"):
			all[have] = vs
		case name == "" || have < name:
			name = have
		}
	}
	defaultTo(&name, "Set-Cookie")
	all[name] = append((&headers{multi: r.Header}).appendTo(nil, "Set-Cookie"), r.Cookies...)
	return all
}

// joined returns headers with one value for each name. It joins several values with commas
// (RFC 9110, 5.3). Several Set-Cookie values can't be joined, so joined returns them as
// cookies.
func joined(header map[string][]string) (headers map[string]string, cookies []string) {
	headers = make(map[string]string, len(header))
	for name, values := range header {
		if strings.EqualFold(name, "Set-Cookie") && len(values) > 1 {
			cookies = append(cookies, values...)
			continue
		}
		headers[name] = strings.Join(values, ", ")
	}
	return headers, cookies
}
