package idemtest

import (
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Identity returns the identity of the record that a guard keeps for an event of
// [Request.APIGateway] or [Request.APIGatewayV2]. Pass it to Guard.RecordID to get the record's id:
//
//	id := guard.RecordID(r.Identity())
//
// If the guard has Options.Principal, first set the field Principal of the identity to the value
// that Options.Principal returns. For requests of other sources, use [Request.IdentityFunctionURL],
// [Request.IdentityALB] or [Request.IdentityHTTP].
func (r Request) Identity() lambdaidem.Identity {
	r = r.withDefaults()
	identity := r.identity()
	identity.Principal = r.Caller.Principal()
	if namesRoute(r.Route) {
		identity.Route = r.Route
	} else {
		identity.Path = r.Path
	}
	return identity
}

// IdentityFunctionURL returns the identity of the record, like [Request.Identity], for an
// event of [Request.FunctionURL].
func (r Request) IdentityFunctionURL() lambdaidem.Identity {
	r = r.withDefaults()
	identity := r.identity()
	identity.Principal, identity.Path = r.Caller.Principal(), r.Path
	return identity
}

// IdentityALB returns the identity of the record, like [Request.Identity], for an event of
// [Request.ALB] or [Request.ALBMultiValue].
func (r Request) IdentityALB() lambdaidem.Identity {
	r = r.withDefaults()
	identity := r.identity()
	identity.Path = r.Path
	return identity
}

// IdentityHTTP returns the identity of the record for a request of [Request.HTTP]. It assumes that
// an http.ServeMux routes the request to the guard's middleware, by a pattern that ends in Route,
// such as "POST /payments/{id}".
//
// If the middleware wraps the mux, or if you use a router that does not set http.Request.Pattern,
// the guard identifies the record by the path instead. Then set Route of the result to "" and Path
// to the request's path.
func (r Request) IdentityHTTP() lambdaidem.Identity {
	identity := r.Identity()
	identity.Principal, identity.Host = "", host
	return identity
}

// identity returns the fields of the identity that are the same for all kinds of events and
// requests, such as those of [Request.APIGateway], [Request.ALB] and [Request.HTTP].
func (r Request) identity() lambdaidem.Identity {
	return lambdaidem.Identity{Method: strings.ToUpper(r.Method), Key: r.Key}
}

// namesRoute reports whether a template names a route. A catch-all does not: $default,
// {proxy+}, or a pattern of http.ServeMux that ends in "/" or "{name...}". A guard then uses
// the request's path.
func namesRoute(template string) bool {
	return template != "$default" && !strings.Contains(template, "+}") && !strings.HasSuffix(template, "/") && !strings.HasSuffix(template, "...}")
}
