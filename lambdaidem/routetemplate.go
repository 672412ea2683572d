package lambdaidem

import (
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// isCatchAll reports whether a route template is missing or does not name a single route. A
// template does not name a single route if it is "$default", ends in a slash, or has a greedy
// parameter, such as {proxy+} in API Gateway and {rest...} in net/http.
func isCatchAll(template string) bool {
	return template == "" || template == "$default" || strings.Contains(template, "+}") || strings.HasSuffix(template, "...}") || strings.HasSuffix(template, "/")
}

// routeOf returns the host, in lower case, and the path of the http.ServeMux pattern that matched a
// request. The path becomes the route template. If both results are empty, the path of the request
// identifies the record instead. They are empty in these cases:
//
//   - The pattern does not match the method, host or complete path that the client requested, for
//     example behind http.StripPrefix.
//   - The pattern can match paths with different numbers of segments.
//   - The pattern has a syntax that only other routers know.
func routeOf(r *http.Request, reqTarget target) (host, template string) {
	if r.URL.EscapedPath() != reqTarget.path {
		return "", ""
	}
	pattern := r.Pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		if method := pattern[:i]; method != r.Method {
			return "", ""
		}
		pattern = strings.TrimLeft(pattern[i+1:], " \t")
	}
	slash := strings.IndexByte(pattern, '/')
	if slash < 0 {
		return "", ""
	}
	host, template = strings.ToLower(pattern[:slash]), pattern[slash:]
	if host != "" && host != reqTarget.host || !matchesOneRoute(template, reqTarget.path) {
		return "", ""
	}
	return host, template
}

// matchesOneRoute reports whether template, the path of a pattern, matches path. It compares the two
// segment by segment, as http.ServeMux does. It returns false for a template that matches any number
// of segments: a subtree ("/a/"), a rest ("{rest...}") or the wildcard of another router ("*").
func matchesOneRoute(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) || strings.Contains(template, "*") {
		return false
	}
	for i, w := range want {
		g, err := url.PathUnescape(got[i])
		last := i == len(want)-1
		switch {
		case err != nil:
			return false
		case w == "{$}":
			if !last || g != "" {
				return false
			}
		case last && w == "", strings.HasSuffix(w, "...}"):
			return false
		case strings.HasPrefix(w, "{") && strings.HasSuffix(w, "}"):
			if g == "" || strings.ContainsAny(w, ":") { // a colon: the syntax of another router
				return false
			}
		case w != g:
			return false
		}
	}
	return true
}

// resourceInID returns the resource in the form that the record's id is made from. In this
// form, the parameters of a route template have no names: "/payments/{id}" becomes
// "/payments/{}". Renaming a parameter therefore does not change the id. That is safe, because
// templates that differ only in these names match the same paths.
func (i *Identity) resourceInID() string {
	if i.kind() != "http" || !strings.Contains(i.Route, "{") {
		return i.resource()
	}
	segments := strings.Split(i.Route, "/")
	for n, s := range segments {
		if isParameter(s) {
			segments[n] = "{}" // no template has this segment
		}
	}
	return strings.Join(segments, "/")
}

// isParameter reports whether a segment of a route template is a parameter such as "{id}".
// It returns false for "{$}", which marks the end of a path in net/http. It also returns
// false for a parameter with a pattern for its value, such as "{id:[0-9]+}" in other routers.
func isParameter(segment string) bool {
	name, opened := strings.CutPrefix(segment, "{")
	name, closed := strings.CutSuffix(name, "}")
	return opened && closed && name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.", c)
	})
}
