package lambdaidem

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// codec brings one type of HTTP event to the canonical form and back. It has
// no opinion: what an answer means is decided in attempt.go.
type codec[In, Out any] interface {
	request(In) *Request
	response(In, Out) Response
	event(In, *Response) Out
}

// guardHTTP wraps a handler of HTTP events. The first answer is the handler's
// own, untouched; a replay is rebuilt from the record.
func guardHTTP[In, Out any](g *Guard, c codec[In, Out], h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		req := c.request(in)
		var own Out
		the := served{
			handle: func(ctx context.Context) (Response, error) {
				var err error
				own, err = h(ctx, in)
				if err != nil {
					return Response{}, err
				}
				return c.response(in, own), nil
			},
			answer: func(v any) (Response, error) {
				var ok bool
				if own, ok = v.(Out); !ok {
					return Response{}, isNotTheAnswer[Out](v)
				}
				return c.response(in, own), nil
			},
			forget: func() { own = *new(Out) },
		}
		take := g.serve
		if g.bypasses(ctx, req) {
			take = g.pass
		}
		resp, err := take(ctx, req, the)
		if resp != nil {
			return c.event(in, resp), nil
		}
		return own, err
	}
}

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

// joinedHeaders looks headers up in an event that has one value for each name,
// repeated headers being joined by the gateway.
func joinedHeaders(h map[string]string) func(string) []string {
	return func(name string) []string {
		var values []string
		for have, v := range h {
			if strings.EqualFold(have, name) {
				values = append(values, v)
			}
		}
		return values
	}
}

// multiHeaders looks headers up in an event that has every value, and a map of
// the last values which is used where the other is silent.
func multiHeaders(multi map[string][]string, single map[string]string) func(string) []string {
	fallback := joinedHeaders(single)
	return func(name string) []string {
		var values []string
		for have, vs := range multi {
			if strings.EqualFold(have, name) {
				values = append(values, vs...)
			}
		}
		if len(values) == 0 {
			return fallback(name)
		}
		return values
	}
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
