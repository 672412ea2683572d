package commands

import (
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// printedRoute returns the method and the route of a scope as idem prints them. A call of Do has no
// method, so only its operation is printed.
func printedRoute(scope lambdaidem.RecordScope) string {
	return strings.TrimPrefix(scope.Method+" "+unescaped(scope.Route), " ")
}

// parseRoute returns the identities of all records whose printed route equals text. It takes the
// other parts of each identity from who. It returns an error if text seems to be the route of an
// HTTP request, but has no method.
func parseRoute(who lambdaidem.Identity, text string) ([]lambdaidem.Identity, error) {
	method, route, _ := strings.Cut(text, " ")
	may, err := withRoute(who, method, route)
	switch {
	case err != nil && who.Host != "":
		return nil, err
	case err != nil && strings.Contains(" "+text, " /"): // most likely a route without its method
		return nil, fmt.Errorf("%w (if it is an operation, give it by --operation)", err)
	case who.Host != "":
		return may, nil
	}
	who.Operation = text // Do may have an operation of this name, too
	return append(may, who), nil
}

// parseScope returns the identities of all records with the scope. The identities have no keys. It
// returns an error if a part of the scope was shortened, because such a scope does not identify a
// record.
func parseScope(scope lambdaidem.RecordScope) ([]lambdaidem.Identity, error) {
	var who lambdaidem.Identity
	var route string
	for _, part := range []struct {
		from string
		to   *string
	}{{scope.Namespace, &who.Namespace}, {scope.Route, &route}, {scope.Principal, &who.Principal}, {scope.Tenant, &who.Tenant}} {
		*part.to = unescaped(part.from)
		switch {
		case lambdaidem.ScopePart(*part.to) == part.from:
		case strings.Contains(part.from, "%~"): // only ScopePart writes this
			return nil, fmt.Errorf("%q was shortened, because it is long, and does not identify a record: show the record by its id", part.from)
		default:
			return nil, fmt.Errorf("%q is no part of a scope, in which a space is %%20, a percent sign is %%25, and a long part is shortened", part.from)
		}
	}
	return withRoute(who, scope.Method, route)
}

// withRoute returns copies of the identity who with the method and the route of a scope. It removes
// the escapes from both. It usually returns one copy. It returns two if records of two kinds have
// such a scope: a message may be known by a key, or by the id that its source gave it; and the
// route of an HTTP request may be a route template, or the path of a request for which there is no
// template.
func withRoute(who lambdaidem.Identity, method, route string) ([]lambdaidem.Identity, error) {
	slash := strings.IndexByte(route, '/')
	switch {
	case method == "" && route != "":
		who.Operation = route
		return []lambdaidem.Identity{who}, nil
	case method == "invoke" && route != "":
		who.Operation, who.Handler = route, true
		return []lambdaidem.Identity{who}, nil
	case method == "message" && route != "":
		who.Operation, who.Message = route, true
		ownID := who
		ownID.OwnID = true
		return []lambdaidem.Identity{who, ownID}, nil
	case method == webSocketMessage && route != "": // a route key of a WebSocket API can be any text
	case method != strings.ToUpper(method) || slash < 0:
		return nil, fmt.Errorf(`%q is not a method in upper case and a path: "POST /payments"`, strings.TrimSpace(method+" "+route))
	case slash > 0 && who.Host != "":
		return nil, fmt.Errorf("%q has a host already: leave out --host", route)
	case slash > 0:
		who.Host, route = route[:slash], route[slash:]
	}
	who.Method, who.Route, who.Path = method, route, route // a guard uses the path if the route is a catch-all
	path := who
	path.Route = ""
	return []lambdaidem.Identity{who, path}, nil
}

// webSocketMessage is the method of a message over a WebSocket API (see Guard.APIGatewayWebSocket).
const webSocketMessage = "MESSAGE"
