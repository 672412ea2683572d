// Package caller identifies the caller of a request.
package caller

import "github.com/aws/aws-lambda-go/events"

// Of returns the caller of a request: the issuer and the subject of the token that the
// gateway's JWT authorizer has verified, separated by a space. If the route has no JWT
// authorizer, Of returns "" and true, because all callers are the same then. If the token
// lacks an issuer or a subject, Of returns false, and the handler must refuse the request.
//
// Of reads only the request context, which the gateway writes. It reads no header, because
// a client can send any header.
func Of(rc events.APIGatewayV2HTTPRequestContext) (string, bool) {
	if rc.Authorizer == nil || rc.Authorizer.JWT == nil {
		return "", true
	}
	iss, sub := rc.Authorizer.JWT.Claims["iss"], rc.Authorizer.JWT.Claims["sub"]
	if iss == "" || sub == "" {
		return "", false
	}
	return iss + " " + sub, true // an issuer is a URL and contains no space, so two callers never get the same name
}
