package lambdaidem

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// principal returns the name of a request's caller, or a refusal if the caller can't be
// identified. The name is "" if callers share their keys; see Options.AnonymousCallers.
func (g *Guard) principal(ctx context.Context, r *Request) (string, *Error) {
	if g.opts.Principal == nil {
		if r.anonymous != "" {
			return "", principalUnknown(errors.New(r.anonymous + "; set Options.Principal"))
		}
		return r.Principal, nil
	}
	p, err := g.opts.Principal(ctx, r)
	return g.named(p, err, "Options.Principal")
}

// named checks p and err, the results of the application's function that identifies the caller.
// funcName is the name of that function. named returns a refusal if err is not nil, or if p is empty
// and Options.AnonymousCallers is not set. Otherwise it returns p as the principal.
func (g *Guard) named(p string, err error, funcName string) (string, *Error) {
	failed := err != nil
	if !failed && p == "" && !g.opts.AnonymousCallers {
		err = errors.New(funcName + " named nobody; set Options.AnonymousCallers if such callers may share their keys")
	}
	if err == nil {
		return p, nil
	}
	if own := ownRefusal(err); own != nil {
		return "", own
	}
	e := principalUnknown(err)
	e.forNow = failed
	return "", e
}

// caller holds what a gateway's event says about the caller of a request. Every value must come
// from the gateway, because a client could forge a value that it sends itself.
type caller struct {
	token    bool   // the gateway has verified a JSON Web Token
	iss, sub string // the issuer and subject claims of the JSON Web Token

	iam      bool   // the gateway has verified an IAM signature
	arn      string // the IAM caller's ARN
	identity string // the id of the caller in a Cognito identity pool

	authorizer  bool   // a Lambda authorizer has accepted the request
	principalID string // the principalId that the Lambda authorizer returned

	certificate     bool   // the gateway has verified a client certificate (mutual TLS)
	subject, issuer string // the distinguished names in the certificate

	apiKeyID string
}

// sharedSession is the session name, after a slash, in the ARN of every user of a Cognito
// identity pool (Amazon Cognito, "Identity pools authentication flow"). An ARN that ends with
// sharedSession therefore does not say which user made the request.
const sharedSession = "/CognitoIdentityCredentials"

// principal returns the caller's name. It comes from the first of these credentials that the
// gateway has verified: a JSON Web Token, an IAM ARN, a Lambda authorizer, a Cognito identity, a
// client certificate, an API key.
//
// If a credential does not say who the caller is, principal is "", and anonymous says what is
// missing. Both are "" if the gateway has authenticated nobody.
func (c caller) principal() (principal, anonymous string) {
	switch {
	case c.iss != "" && c.sub != "":
		return PrincipalOf("jwt", c.iss, c.sub), ""
	case c.token:
		return "", "the token of this request has no iss and sub"
	case c.arn != "" && c.identity != "":
		// The users of a Cognito identity pool share an IAM role and so an ARN. Only the
		// ARN together with the identity names a user.
		return PrincipalOf("iam", c.arn, c.identity), ""
	case strings.HasSuffix(c.arn, sharedSession):
		return "", "the ARN of this request is shared by the users of a Cognito identity pool, and the event names none of them"
	case c.arn != "":
		return PrincipalOf("iam", c.arn), ""
	case c.principalID != "":
		return PrincipalOf("authorizer", c.principalID), ""
	case c.authorizer:
		return "", "the Lambda authorizer of this request named no principalId"
	case c.identity != "":
		return PrincipalOf("cognito", c.identity), ""
	case c.iam:
		return "", "the IAM caller of this request has no ARN"
	case c.subject != "":
		return PrincipalOf("mtls", c.subject, c.issuer), ""
	case c.certificate:
		return "", "the client certificate of this request has no subject"
	case c.apiKeyID != "":
		return PrincipalOf("apikey", c.apiKeyID), ""
	default:
		return "", ""
	}
}

// restCaller returns what the event of a REST API says about the caller.
func restCaller(e *events.APIGatewayProxyRequestContext) (c caller) {
	claims, hasClaims := e.Authorizer["claims"].(map[string]any)
	c.token = hasClaims
	c.iss, _ = claims["iss"].(string)
	c.sub, _ = claims["sub"].(string)
	c.principalID, _ = e.Authorizer["principalId"].(string)
	c.authorizer = len(e.Authorizer) > 0
	c.arn, c.identity, c.apiKeyID = e.Identity.UserArn, e.Identity.CognitoIdentityID, e.Identity.APIKeyID
	if cert := e.Identity.ClientCert; cert != nil {
		c.certificate, c.subject, c.issuer = true, cert.SubjectDN, cert.IssuerDN
	}
	return c
}

// httpCaller returns what the event of an HTTP API says about the caller.
func httpCaller(e *events.APIGatewayV2HTTPRequestContext) (c caller) {
	if cert := e.Authentication.ClientCert; cert.ClientCertPem != "" || cert.SubjectDN != "" || cert.IssuerDN != "" {
		c.certificate, c.subject, c.issuer = true, cert.SubjectDN, cert.IssuerDN
	}
	auth := e.Authorizer
	if auth == nil {
		return c
	}
	if auth.JWT != nil {
		c.token, c.iss, c.sub = true, auth.JWT.Claims["iss"], auth.JWT.Claims["sub"]
	}
	if auth.IAM != nil {
		c.iam, c.arn, c.identity = true, auth.IAM.UserARN, auth.IAM.CognitoIdentity.IdentityID
	}
	c.principalID, _ = auth.Lambda["principalId"].(string)
	// If there is neither a JWT nor an IAM caller, a Lambda authorizer has accepted the request.
	// auth.Lambda does not show this: it is nil if the Lambda authorizer returned no context.
	c.authorizer = auth.JWT == nil && auth.IAM == nil
	return c
}

// functionURLCaller returns what the event of a function URL says about the caller.
func functionURLCaller(e *events.LambdaFunctionURLRequestContext) (c caller) {
	if auth := e.Authorizer; auth != nil && auth.IAM != nil {
		c.iam, c.arn = true, auth.IAM.UserARN
	}
	return c
}

var (
	principalEscapes = strings.NewReplacer("|", "%7C", "%", "%25")
	kindEscapes      = strings.NewReplacer("|", "%7C", "%", "%25", ":", "%3A")
)

// PrincipalOf returns a principal in the form that [Request.Principal] has: the kind, a
// colon, and the parts, separated by "|". It escapes "|" and "%" in the parts, so that
// different parts never yield the same principal.
//
//	lambdaidem.PrincipalOf("jwt", "https://issuer.example.com", "alice")
func PrincipalOf(kind string, parts ...string) string {
	var b strings.Builder
	length := len(kind)
	for _, p := range parts {
		length += len(p) + 1
	}
	b.Grow(length)
	b.WriteString(kindEscapes.Replace(kind))
	for i, p := range parts {
		b.WriteByte(":|"[min(i, 1)])
		if strings.IndexByte(p, '|') >= 0 || strings.IndexByte(p, '%') >= 0 { // rare, so avoid the replacer otherwise
			p = principalEscapes.Replace(p)
		}
		b.WriteString(p)
	}
	return b.String()
}
