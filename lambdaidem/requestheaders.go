package lambdaidem

import (
	"net/http"
	"slices"
	"strings"
)

// headers has the headers of a request as they arrived.
type headers struct {
	header http.Header // headers of a net/http request; nil for an event

	// multi has every value of each header of an event.
	multi map[string][]string
	// single has one value of each header of an event. appendTo reads it only for names that multi
	// lacks. For a repeated header, a load balancer puts the last value here. Every other gateway
	// puts all values here, joined with commas.
	single map[string]string

	// cookies has the cookies of an event in payload format 2.0, which has no Cookie header
	// (API Gateway, "Create AWS Lambda proxy integrations for HTTP APIs").
	cookies []string
}

// appendTo appends the values of the header with the given name to dst. The case of the name does
// not matter. If the event has the name in several capitalizations, appendTo visits them in sorted
// order, so that equal events yield equal values: the order of a map is random.
func (h *headers) appendTo(dst []string, name string) []string {
	if h.header != nil {
		return append(dst, h.header.Values(name)...)
	}
	none := len(dst)
	one, several := spellings(h.multi, name)
	dst = append(dst, h.multi[one]...)
	for _, have := range several {
		dst = append(dst, h.multi[have]...)
	}
	if len(dst) > none {
		return dst
	}
	one, several = spellings(h.single, name)
	if v, ok := h.single[one]; ok {
		dst = append(dst, v)
	}
	for _, have := range several {
		dst = append(dst, h.single[have])
	}
	if len(h.cookies) > 0 && strings.EqualFold(name, "Cookie") {
		dst = append(dst, strings.Join(h.cookies, "; "))
	}
	return dst
}

// spellings returns the keys of m that equal the given name if case is ignored: the first key in
// sorted order, and the others, also sorted. If there is no such key, first is the given name and
// others is nil.
func spellings[V any](m map[string]V, name string) (first string, others []string) {
	first, found := name, false
	for have := range m {
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
