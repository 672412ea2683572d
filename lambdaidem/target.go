package lambdaidem

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// target is the host, path and query that the client requested. The host is in lower case and has
// no port. If an outer handler has rewritten a value, the field has both values, the original
// first. Two requests that are rewritten to the same URL thus still have different records.
type target struct{ host, path, query string }

const rewrittenTo = " > "

// targetOf returns the target of a request. It reads RequestURI and not URL, because
// http.StripPrefix and routers change only URL. If the middleware Outermost has recorded RequestURI
// and Host, targetOf compares them with the recorded values, and so finds out whether an outer
// handler has rewritten them.
func targetOf(r *http.Request) (target, *Error) {
	o, uri := originalOf(r), r.RequestURI
	if o != nil && uri == "" {
		uri = r.URL.RequestURI()
	}
	if uri == "" {
		return target{}, &Error{Code: ErrRequestInvalid, Status: http.StatusInternalServerError,
			Detail: "What the client asked for can't be told.",
			Err: errors.New("the request has no RequestURI, so a path that was stripped can't be told from one that was not: " +
				"put lambdaidem.Outermost around the outermost handler; in tests make requests by httptest.NewRequest")}
	}
	reqTarget, err := parseTarget(r.Host, uri)
	if err == nil && o != nil && (o.uri != uri || o.host != r.Host) {
		var first target
		if first, err = parseTarget(o.host, o.uri); err == nil {
			reqTarget = target{joinRewritten(first.host, reqTarget.host), joinRewritten(first.path, reqTarget.path), joinRewritten(first.query, reqTarget.query)}
		}
	}
	if err != nil {
		return target{}, requestInvalid("The request's target is no URI.", errors.Unwrap(err)) // without the URI itself
	}
	if now := r.URL.EscapedPath(); !strings.HasSuffix(reqTarget.path, now) {
		reqTarget.path += rewrittenTo + now
	}
	return reqTarget, nil
}

func parseTarget(host, uri string) (target, error) {
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return target{}, err
	}
	return target{host: strings.ToLower(hostname(host)), path: u.EscapedPath(), query: u.RawQuery}, nil
}

// joinRewritten returns a value for a field of target. first is the value that the client sent,
// and second is the value that the guard received. If the two are equal, joinRewritten returns
// this value. Otherwise it returns both values, separated by rewrittenTo.
func joinRewritten(first, second string) string {
	if first == second {
		return first
	}
	return first + rewrittenTo + second
}

// hostname returns a host without its port, without the brackets of an IPv6 address, and
// without a dot at the end.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}
