package idemtest

import "github.com/lambdaidem/toolkit/lambdaidem"

// Caller is the sender of a [Request], as authenticated by the gateway. The zero Caller is not
// authenticated. Create others with [JWT], [IAM], [Cognito], [Authorizer], [Certificate] and
// [APIKey]. Each of these functions panics if a required argument is empty, because a guard needs
// that argument to distinguish callers.
type Caller struct {
	kind          callerKind
	first, second string // the arguments of the function that created the caller; second may be unused
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

// JWT returns the caller who sent a JSON Web Token with these claims: the issuer (iss) and
// the subject (sub). Neither may be empty.
func JWT(iss, sub string) Caller {
	return newCaller(jwt, iss, sub, iss != "" && sub != "", "iss and sub")
}

// IAM returns the caller with this ARN, who signed the request with AWS credentials.
func IAM(arn string) Caller { return newCaller(iam, arn, "", arn != "", "arn") }

// Cognito returns a user of a Cognito identity pool. arn is the ARN of the role that the
// users of the pool share. identity is the user's own id. arn may be empty for events of a
// REST API.
func Cognito(arn, identity string) Caller {
	return newCaller(cognito, arn, identity, identity != "", "identity")
}

// Authorizer returns the caller for whom a Lambda authorizer returned this principalId.
func Authorizer(principalID string) Caller {
	return newCaller(authorizer, principalID, "", principalID != "", "principalID")
}

// Certificate returns the caller who presented a client certificate (mutual TLS). subject
// and issuer are distinguished names. issuer may be empty.
func Certificate(subject, issuer string) Caller {
	return newCaller(certificate, subject, issuer, subject != "", "subject")
}

// APIKey returns the caller who sent an API key of a REST API. id is the id of that key.
func APIKey(id string) Caller { return newCaller(apiKey, id, "", id != "", "id") }

// newCaller returns a Caller for an exported function, such as [JWT], whose arguments are first and
// second. It panics if complete is false, which means that a required argument is empty. needed
// lists the required arguments for the panic's text.
func newCaller(kind callerKind, first, second string, complete bool, needed string) Caller {
	if !complete {
		panic("idemtest: " + string(kind) + ": " + needed + " must not be empty: nothing would tell such a caller from others")
	}
	return Caller{kind, first, second}
}

// Principal returns the principal under which a guard stores the caller's records, as
// lambdaidem.PrincipalOf forms it. It returns "" for the zero Caller.
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

// cantCarry panics because an event of this kind can't contain the caller. knows lists the
// kinds of callers that such an event can contain.
func (c Caller) cantCarry(event, knows string) {
	panic("idemtest: " + event + " can't carry a caller made by " + string(c.kind) + "; it knows " + knows)
}
