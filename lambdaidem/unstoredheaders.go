package lambdaidem

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// toStore returns the response to store: r without the headers that Options.UnstoredHeaders
// names.
func (g *Guard) toStore(r *Response) *Response {
	if len(g.opts.UnstoredHeaders) == 0 {
		return r
	}
	out := *r // a copy, because the first caller receives r with these headers
	out.Header, out.fromHeaders, out.trailer = maps.Clone(r.Header), maps.Clone(r.fromHeaders), maps.Clone(r.trailer)
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
