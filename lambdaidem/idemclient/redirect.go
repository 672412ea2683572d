package idemclient

import (
	"net/http"
	"strings"
)

// lastRedirect goes back through the redirects that led to req, and returns the most recent
// redirected request for which match returns true. It returns nil if there is none.
func lastRedirect(req *http.Request, match func(*http.Request) bool) *http.Request {
	for resp := req.Response; resp != nil && resp.Request != nil; resp = resp.Request.Response {
		if match(resp.Request) {
			return resp.Request
		}
	}
	return nil
}

// nameRequest sets resp.Request to the request that was sent, as http.Transport does. Other
// RoundTrippers might leave the field nil. After a redirect, lastRedirect follows resp.Request back
// to the requests that were redirected.
func nameRequest(resp *http.Response, req *http.Request) {
	if resp != nil {
		resp.Request = req
	}
}

// withoutKey returns the request to send for the unguarded request req: usually req itself. If a
// host that was passed to New has redirected req to a host that was not passed to New, the result
// is a copy of req without the key. The second host must not see the key, which net/http copies
// from the header of the first request.
func (t *Transport) withoutKey(req *http.Request) *http.Request {
	if len(t.keysIn(req.Header)) == 0 || t.hasListedHost(req) || lastRedirect(req, t.hasListedHost) == nil {
		return req
	}
	outReq := req.WithContext(req.Context())
	outReq.Header = req.Header.Clone()
	for name := range req.Header {
		if strings.EqualFold(name, t.opts.KeyHeader) {
			delete(outReq.Header, name)
		}
	}
	return outReq
}
