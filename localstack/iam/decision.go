package iam

import (
	"cmp"
	"strings"
)

// Request is an action on a resource, for which a function needs a permission. One call of an API
// may consist of several requests, such as the actions of a transaction.
type Request struct {
	Action   string // such as dynamodb:PutItem
	Resource string // an ARN
	Keys     Keys   // condition keys of this request; those that every request has are added
}

// Decision is the result of evaluating the policies of a function for a request.
type Decision struct {
	Allowed bool

	// Message is the text of AWS's error, for a request that is not allowed
	// ("Troubleshoot access denied error messages").
	Message string

	// Reason names the statement that denies the request, or the statement that would come
	// closest to allowing it. It is for a log.
	Reason string

	// Undecided says why AWS may refuse a request that is allowed here: the decision depends
	// on something that only AWS knows. It is empty if the policies decide.
	Undecided string

	used []*grant // the permissions that allow the request
}

// decide evaluates a request as the page "Policy evaluation logic" describes it for a role
// without other policies: a statement with Deny wins, and a request that no statement allows is
// refused.
func (p *principal) decide(r *Request) Decision {
	keys := p.keys(r)
	var used []*grant
	var nearest, maybeAllowed, maybeDenied string
	for _, s := range p.statements {
		entry, ok := s.action(r)
		if !ok {
			continue
		}
		result, why := s.applies(r, keys)
		switch {
		case result == yes && s.deny:
			return Decision{Message: p.message(r, "with an explicit deny in an identity-based policy"), Reason: s.At + " denies it"}
		case result == yes:
			used = append(used, s.grants[entry])
		case result == undecided && s.deny:
			maybeDenied = s.At + ": " + why
		case result == undecided:
			maybeAllowed = s.At + ": " + why
		case !s.deny:
			nearest = s.At + " allows it, but " + why
		}
	}
	switch {
	case len(used) > 0:
		return Decision{Allowed: true, Undecided: maybeDenied, used: used}
	case maybeAllowed != "":
		return Decision{Allowed: true, Undecided: maybeAllowed}
	case len(p.role.Unknown) > 0:
		return Decision{Allowed: true, Undecided: strings.Join(p.role.Unknown, "; ")}
	}
	return Decision{
		Message: p.message(r, "because no identity-based policy allows the "+p.spelling(r)+" action"),
		Reason:  cmp.Or(nearest, "no statement of "+p.role.Name+" has the action"),
	}
}

// message returns the message of AWS's error for a refused request.
func (p *principal) message(r *Request, because string) string {
	return "User: " + p.session + " is not authorized to perform: " + p.spelling(r) + " on resource: " + r.Resource + " " + because
}

// spelling returns the action as the service spells it in its errors. SQS uses lower case.
func (p *principal) spelling(r *Request) string {
	if strings.HasPrefix(r.Action, "sqs:") {
		return strings.ToLower(r.Action)
	}
	return r.Action
}
