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

// appendTo adds the values of a header to values, in order, by its name in any case.
func (h *headers) appendTo(values []string, name string) []string {
	if h.sent != nil {
		return append(values, h.sent.Values(name)...)
	}
	none := len(values)
	for have, vs := range h.multi {
		if strings.EqualFold(have, name) {
			values = append(values, vs...)
		}
	}
	if len(values) > none {
		return values
	}
	for have, v := range h.single {
		if strings.EqualFold(have, name) {
			values = append(values, v)
		}
	}
	return values
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

// withCookies is an answer's headers with its cookies among them, for events
// that have no place of their own for cookies.
func withCookies(r *Response) map[string][]string {
	if len(r.Cookies) == 0 {
		return r.Header
	}
	all := make(map[string][]string, len(r.Header)+1)
	name, values := "Set-Cookie", []string(nil)
	for have, vs := range r.Header {
		if strings.EqualFold(have, name) {
			name, values = have, vs
			continue
		}
		all[have] = vs
	}
	all[name] = append(slices.Clone(values), r.Cookies...)
	return all
}

// joined is one value for each header: repeated ones joined by commas (RFC
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
