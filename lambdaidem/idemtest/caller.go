package idemtest

import "github.com/lambdaidem/toolkit/lambdaidem"

// Caller is somebody whom a gateway vouches for. The zero Caller is nobody.
// Make others by [JWT], [IAM], [Cognito], [Authorizer], [Certificate] and
// [APIKey]; each panics if what tells the caller from others is empty.
type Caller struct {
	kind          callerKind
	first, second string // what the constructor was given
}

type callerKind string

const (
	nobody      callerKind = ""
	jwt         callerKind = "JWT"
	iam         callerKind = "IAM"
	cognito     callerKind = "Cognito"
	authorizer  callerKind = "Authorizer"
	certificate callerKind = "Certificate"
	apiKey      callerKind = "APIKey"
)

// JWT is who brought a token of an issuer (iss) that names a subject (sub).
func JWT(iss, sub string) Caller {
	return newCaller(jwt, iss, sub, iss != "" && sub != "", "iss and sub")
}

// IAM is who signed the request, by ARN.
func IAM(arn string) Caller { return newCaller(iam, arn, "", arn != "", "arn") }

// Cognito returns a user of a Cognito identity pool: identity tells them apart, arn
// is that of the role which they share. arn may be empty in events of a REST
// API.
func Cognito(arn, identity string) Caller {
	return newCaller(cognito, arn, identity, identity != "", "identity")
}

// Authorizer is whom a Lambda authorizer named by its principalId.
func Authorizer(principalID string) Caller {
	return newCaller(authorizer, principalID, "", principalID != "", "principalID")
}

// Certificate is who showed a client certificate (mutual TLS), by distinguished
// names.
func Certificate(subject, issuer string) Caller {
	return newCaller(certificate, subject, issuer, subject != "", "subject")
}

// APIKey is who sent an API key of a REST API, by the key's id.
func APIKey(id string) Caller { return newCaller(apiKey, id, "", id != "", "id") }

func newCaller(kind callerKind, first, second string, known bool, needed string) Caller {
	if !known {
		panic("idemtest: " + string(kind) + ": " + needed + " must not be empty: nothing would tell such a caller from others")
	}
	return Caller{kind, first, second}
}

// Principal returns the caller as Request.Principal and records have it, made by
// lambdaidem.PrincipalOf; empty for nobody.
func (c Caller) Principal() string {
	switch c.kind {
	case jwt:
		return lambdaidem.PrincipalOf("jwt", c.first, c.second)
	case iam:
		return lambdaidem.PrincipalOf("iam", c.first)
	case cognito:
		if c.first == "" {
			return lambdaidem.PrincipalOf("cognito", c.second)
		}
		return lambdaidem.PrincipalOf("iam", c.first, c.second)
	case authorizer:
		return lambdaidem.PrincipalOf("authorizer", c.first)
	case certificate:
		return lambdaidem.PrincipalOf("mtls", c.first, c.second)
	case apiKey:
		return lambdaidem.PrincipalOf("apikey", c.first)
	default:
		return ""
	}
}

// cantCarry is the panic of a builder whose event has no place for the caller.
func (c Caller) cantCarry(event, knows string) {
	panic("idemtest: " + event + " can't carry a caller made by " + string(c.kind) + "; it knows " + knows)
}
