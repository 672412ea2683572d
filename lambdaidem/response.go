package lambdaidem

import (
	"maps"
	"slices"
	"strings"
)

// Response is an HTTP response, regardless of the kind of event or server that it is for.
type Response struct {
	Status int
	// Header maps the name of each header to its values in order. Names keep the handler's
	// capitalization.
	Header  map[string][]string
	Cookies []string // Set-Cookie values of an event that has a separate field for them; else they are in Header
	Body    string   // base64 text if Base64 is true, else the bytes of the body
	Base64  bool

	reason string // status description that a handler of ALB events wrote, such as "200 OK"
	policy Policy // the guard's policy, set for Options.Outcome so that DefaultOutcome knows it; else empty
	// fromHeaders is for responses of REST API events, which have two maps of headers. If a handler
	// sets the same header in both maps, ignoring case, fromHeaders has the value from the map
	// Headers, and Header has the values from MultiValueHeaders. Both are stored, because the
	// gateway decides how to combine them.
	fromHeaders map[string]string
	// added and removed are for net/http responses. The guarded handler shares one header map with
	// outer handlers, such as middleware. A replay repeats the guarded handler's changes to that
	// map:
	//
	//   - For each name in added, it appends the values in Header.
	//   - For each name in removed, it deletes the header.
	//   - For every other name in Header, it replaces the values.
	added, removed []string
	// trailer has the trailers of a net/http response, the headers that are sent after the body.
	trailer map[string][]string
}

// Set sets the header with the given name to a single value, and removes its earlier values. The
// case of the name does not matter.
func (r *Response) Set(name, value string) {
	r.Del(name)
	if r.Header == nil {
		r.Header = make(map[string][]string)
	}
	r.Header[name] = []string{value}
}

// Del removes all values of the header with the given name. The case of the name does not matter.
func (r *Response) Del(name string) {
	for have := range r.Header {
		if strings.EqualFold(have, name) {
			delete(r.Header, have)
		}
	}
	for have := range r.fromHeaders {
		if strings.EqualFold(have, name) {
			delete(r.fromHeaders, have)
		}
	}
	r.added = slices.DeleteFunc(r.added, func(have string) bool { return strings.EqualFold(have, name) })
}

// value returns the first value of the header with the given name, or "" if there is none. The case
// of the name does not matter.
func (r *Response) value(name string) string {
	for have, values := range r.Header {
		if strings.EqualFold(have, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// clone returns a copy of r with its own headers, cookies and trailers, so that hooks and outer
// handlers can change the copy without changing r.
func (r *Response) clone() *Response {
	own := *r
	own.Header, own.trailer = cloneHeaders(r.Header), cloneHeaders(r.trailer)
	own.Cookies, own.fromHeaders = slices.Clone(r.Cookies), maps.Clone(r.fromHeaders)
	own.added = slices.Clone(r.added)
	return &own
}

// cloneHeaders returns a deep copy of header. All copied values share one backing array, which
// saves allocations.
func cloneHeaders(header map[string][]string) map[string][]string {
	if header == nil {
		return nil
	}
	all := 0
	for _, values := range header {
		all += len(values)
	}
	out, room := make(map[string][]string, len(header)), make([]string, 0, all)
	for name, values := range header {
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
