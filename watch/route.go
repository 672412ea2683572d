package watch

import (
	"slices"
	"strings"
)

// routeOf returns the route in a record's scope, spelled as in the metrics of its guard: a
// method and a route template, or an operation. It returns "" if the route is not one of
// w.routes. A scope without a route template has the path that the client sent, and nothing
// that a client chose may become a dimension of a metric.
//
// A scope has the namespace, the method, the route, the caller and, with tenant isolation, the
// tenant, separated by single spaces. Calls without an HTTP method have "invoke", "message"
// or, for Do, an empty method.
func (w watch) routeOf(scope string) string {
	parts := strings.Split(scope, " ")
	if len(parts) < 4 {
		return ""
	}
	method, route := parts[1], parts[2]
	switch method {
	case "", "invoke", "message":
	default:
		route = method + " " + route
	}
	if !slices.Contains(w.routes, route) {
		return ""
	}
	return route
}
