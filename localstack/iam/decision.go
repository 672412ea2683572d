package iam

import (
	"cmp"
	"strings"
)

// Request is what one call needs a permission for. A call of the API may need several.
type Request struct {
	Action   string // such as dynamodb:PutItem
	Resource string // an ARN
	Keys     Keys   // the condition keys of this request, beside those that every request has
}

// Decision is what the policies of a function say about a request.
type Decision struct {
	Allowed bool

	// Message is the text of AWS's error, for a request that is not allowed
	// ("Troubleshoot access denied error messages").
	Message string

	// Reason says which statement decided, or came closest to it. It is for a log.
	Reason string

	// Undecided says what AWS may decide otherwise, because it depends on something that
	// only AWS knows. It is empty if the policies decide.
	Undecided string

	used []*grant // the permissions that allow the request
}

// decide evaluates a request as the page "Policy evaluation logic" describes it for one account
// without other policies than those of the role: a statement with Deny wins, and without any
// statement that allows the request it is refused.
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

// message returns the text of the error of AWS.
func (p *principal) message(r *Request, because string) string {
	return "User: " + p.session + " is not authorized to perform: " + p.spelling(r) + " on resource: " + r.Resource + " " + because
}

// spelling returns the action as the service writes it in its errors: SQS writes it in lower
// case.
func (p *principal) spelling(r *Request) string {
	if strings.HasPrefix(r.Action, "sqs:") {
		return strings.ToLower(r.Action)
	}
	return r.Action
}
