package lambdaidem

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// storedAnswer is the JSON form in which a record stores an HTTP response. It has the shape
// of API Gateway's proxy response, so that an operator can read it in the table.
type storedAnswer struct {
	StatusCode        *int                `json:"statusCode"` // nil after decoding JSON that is not an HTTP response
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded,omitempty"`
	// Beside is set only for responses of REST API events, if the handler set the same
	// header in both maps, ignoring case. Beside then has the value that the handler put
	// into Headers. The values that the handler put into MultiValueHeaders are stored like
	// those of any other header. A replay sends both maps as the handler set them, because
	// the gateway decides how to combine their values.
	Beside map[string]string `json:"beside,omitempty"`
	// Added is set only for net/http responses, whose headers may come from outer handlers
	// too, such as middleware. It names the headers to which the guarded handler appended
	// values. A replay appends these values to those of the outer handlers.
	Added []string `json:"added,omitempty"`
	// Removed is set only for net/http responses. It names the headers that an outer
	// handler had set and that the guarded handler then deleted. A replay deletes these
	// headers too.
	Removed []string `json:"removed,omitempty"`
	// Trailers is set only for net/http responses. It has the header fields that follow the
	// body.
	Trailers map[string][]string `json:"trailers,omitempty"`
	// Bytes reports whether the strings of this answer are stored in base64, that is, the
	// body, the status description, the cookies, and the values of headers and trailers.
	// Names are never in base64. Bytes is set if at least one of these strings is not valid
	// UTF-8, because JSON can't represent such a string.
	Bytes bool `json:"bytes,omitempty"`
}

func encodeAnswer(r *Response) []byte {
	quotes := strings.Count(r.Body, `"`) // a JSON body has many quotes, and each is escaped
	return r.appendTo(make([]byte, 0, len(r.Body)+quotes+256))
}

func decodeAnswer(data []byte) (*Response, error) {
	if r, ok := readAnswer(string(data)); ok {
		return r, nil
	}
	return unmarshalAnswer(data)
}

// unmarshalAnswer decodes a stored response of any form, by encoding/json. decodeAnswer
// uses it for what the faster readAnswer does not accept.
func unmarshalAnswer(data []byte) (*Response, error) {
	var s storedAnswer
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decode the stored answer: %w", err)
	}
	if s.StatusCode == nil {
		return nil, errors.New("decode the stored answer: it is no HTTP answer")
	}
	if s.Bytes {
		var failed error
		s.mapTexts(func(text string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(text)
			return string(b), err
		}, &failed)
		if failed != nil {
			return nil, fmt.Errorf("decode the stored answer: %w", failed)
		}
	}
	return &Response{Status: *s.StatusCode, reason: s.StatusDescription, Header: joinHeaders(s.Headers, s.MultiValueHeaders),
		Cookies: s.Cookies, Body: s.Body, Base64: s.IsBase64Encoded,
		beside: s.Beside, added: s.Added, removed: s.Removed, trailer: s.Trailers}, nil
}

// clone returns a copy of r with its own headers, cookies and trailers. Hooks and outer
// handlers may change those of the copy.
func (r *Response) clone() *Response {
	own := *r
	own.Header, own.trailer = cloneHeaders(r.Header), cloneHeaders(r.trailer)
	own.Cookies, own.beside = slices.Clone(r.Cookies), maps.Clone(r.beside)
	own.added = slices.Clone(r.added)
	return &own
}

// cloneHeaders returns a deep copy of from. All copied values share one backing array,
// which saves allocations.
func cloneHeaders(from map[string][]string) map[string][]string {
	if from == nil {
		return nil
	}
	all := 0
	for _, values := range from {
		all += len(values)
	}
	out, room := make(map[string][]string, len(from)), make([]string, 0, all)
	for name, values := range from {
		if values == nil { // keep nil: its JSON is null, not []
			out[name] = nil
			continue
		}
		begin := len(room)
		room = append(room, values...)
		out[name] = room[begin:len(room):len(room)]
	}
	return out
}

// isText reports whether every string of the response, except the names of headers, is
// valid UTF-8. Such strings are stored as JSON strings without base64.
func (r *Response) isText() bool {
	if !utf8.ValidString(r.Body) || !utf8.ValidString(r.reason) {
		return false
	}
	for _, several := range []map[string][]string{r.Header, r.trailer} {
		for _, values := range several {
			if !allUTF8(values) {
				return false
			}
		}
	}
	for _, v := range r.beside {
		if !utf8.ValidString(v) {
			return false
		}
	}
	return allUTF8(r.Cookies)
}

func allUTF8(texts []string) bool {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// mapTexts replaces every string except header names by the result of f. If f returns
// errors, mapTexts sets *failed to the last one.
func (s *storedAnswer) mapTexts(f func(string) (string, error), failed *error) {
	one := func(t string) string {
		out, err := f(t)
		if err != nil {
			*failed = err
		}
		return out
	}
	all := func(texts []string) []string {
		out := make([]string, len(texts))
		for i, t := range texts {
			out[i] = one(t)
		}
		return out
	}
	ones := func(from map[string]string) map[string]string {
		out := make(map[string]string, len(from))
		for name, v := range from {
			out[name] = one(v)
		}
		return out
	}
	several := func(from map[string][]string) map[string][]string {
		out := make(map[string][]string, len(from))
		for name, values := range from {
			out[name] = all(values)
		}
		return out
	}
	s.Headers, s.Beside, s.MultiValueHeaders, s.Trailers = ones(s.Headers), ones(s.Beside), several(s.MultiValueHeaders), several(s.Trailers)
	s.Cookies, s.Body, s.StatusDescription = all(s.Cookies), one(s.Body), one(s.StatusDescription)
}

// splitHeaders splits headers into those with exactly one value and the others, for the two
// header maps of API Gateway's proxy response.
func splitHeaders(all map[string][]string) (single map[string]string, multi map[string][]string) {
	for name, values := range all {
		if len(values) == 1 {
			if single == nil {
				single = make(map[string]string, len(all))
			}
			single[name] = values[0]
			continue
		}
		if multi == nil {
			multi = make(map[string][]string)
		}
		multi[name] = values
	}
	return single, multi
}

// joinHeaders merges headers with one value each and headers with lists of values into one
// map. No name may be in both: the value in single would be lost.
func joinHeaders(single map[string]string, multi map[string][]string) map[string][]string {
	if len(single)+len(multi) == 0 {
		return nil
	}
	all := make(map[string][]string, len(single)+len(multi))
	values := make([]string, 0, len(single)) // the backing array for all values of single
	for name, v := range single {
		n := len(values)
		values = append(values, v)
		all[name] = values[n : n+1 : n+1]
	}
	for name, values := range multi {
		all[name] = values
	}
	return all
}
