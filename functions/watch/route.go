package main

import (
	"slices"
	"strings"
)

// routeOf returns the route of a record's scope, as its guard's metrics have it: a method
// and a template, or an operation. It is empty unless it is one of those that are
// watched: where there is no template a scope has the path as the client asked for it,
// and nothing that a client chose may be a metric's dimension.
//
// A scope is the namespace, the method, the route, the caller and, with tenant
// isolation, the tenant, parted by single spaces; "invoke" and "message" stand for the
// method of what has none, and Do has an empty one. See lambdaidem.Record.Scope.
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
