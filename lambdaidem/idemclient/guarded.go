package idemclient

import (
	"net/http"
	"slices"
	"strings"
)

// guards reports whether a request is guarded, so that t gives it a key and retries it. A request
// is guarded if its method is in Options.Methods, its host was passed to New, and Options.Skip
// does not return true for it.
func (t *Transport) guards(req *http.Request) bool {
	return slices.Contains(t.opts.Methods, strings.ToUpper(req.Method)) && t.hasListedHost(req) &&
		(t.opts.Skip == nil || !t.opts.Skip(req))
}

// hasListedHost reports whether a request goes to one of the hosts that were passed to New.
func (t *Transport) hasListedHost(req *http.Request) bool {
	return req.URL != nil && t.hosts[originOf(req.URL)]
}
