package lambdaidem

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// codec brings one type of HTTP event to the canonical form and back. It has
// no opinion: what an answer means is decided in attempt.go. Events are large, and
// stay where they are.
type codec[In, Out any] interface {
	request(*In, *Request) // a zero one
	response(*In, Out) Response
	event(*In, *Response) Out
}

// guardHTTP wraps a handler of HTTP events. The first answer is the handler's
// own, untouched; a replay is rebuilt from the record.
func guardHTTP[In, Out any](g *Guard, c codec[In, Out], h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		call := &eventCall[In, Out]{codec: c, handler: h, in: in}
		req := new(Request) // apart from the call: a hook may keep it
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

// eventCall is a call of the user's handler with an event.
type eventCall[In, Out any] struct {
	work    httpWork
	codec   codec[In, Out]
	handler func(context.Context, In) (Out, error)
	in      In
	own     Out // what the handler returned
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

// setBody takes the body of an event. One that can't be decoded is refused
// later, if the request is guarded at all.
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

// headers are the headers of a request, in one of its forms.
type headers struct {
	sent http.Header // of net/http, by canonical names

	// Of an event: every value, and one for each name, which is used where the other
	// is silent. An event that has the latter alone has repeated headers joined by the
	// gateway.
	multi  map[string][]string
	single map[string]string
}

// appendTo appends the values of a header to values, by its name in any case. A
// client may spell one name in several ways: the values come in the order of the
// spellings then, so that equal events have equal values.
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
	return values
}

// spellings returns the spellings under which a map has a header, sorted: the first
// one and the others, of which there are hardly ever any. Without the header the
// first is name itself, which the map doesn't have then.
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

// queryOf writes parameters as a query, by name; values of one name stay in
// order. escape says whether the event has them decoded.
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

// withCookies returns an answer's headers with its cookies among them, for events
// that have no place of their own for cookies.
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

// joined returns one value for each header: repeated ones joined by commas (RFC
// 9110, 5.3), and the cookies apart, which can't be joined.
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
