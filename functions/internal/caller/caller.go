// Package caller tells whose request it is.
package caller

import "github.com/aws/aws-lambda-go/events"

// Of returns who sent a request: the issuer and subject of the token that the
// gateway's JWT authorizer has verified, or "" where the route has no such
// authorizer, so that nobody is told apart. It is false where there is a token
// that names nobody: such a caller must see nothing.
//
// It reads the request context, which the gateway writes, and never a header,
// which anybody can.
func Of(rc events.APIGatewayV2HTTPRequestContext) (string, bool) {
	if rc.Authorizer == nil || rc.Authorizer.JWT == nil {
		return "", true
	}
	iss, sub := rc.Authorizer.JWT.Claims["iss"], rc.Authorizer.JWT.Claims["sub"]
	if iss == "" || sub == "" {
		return "", false
	}
	return iss + " " + sub, true // an issuer is a URL: it has no space
}
