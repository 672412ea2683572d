package iam

import (
	"fmt"
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
	var d Decision
	var nearest string
	for _, s := range p.statements {
		entry, ok := s.action(r)
		if !ok {
			continue
		}
		result, why := s.applies(r, keys)
		switch {
		case result == no && !s.deny:
			nearest = fmt.Sprintf("%s allows it, but %s", s.At, why)
		case result == undecided:
			d.Undecided = s.At + ": " + why
			d.Allowed = d.Allowed || !s.deny
		case result == yes && s.deny:
			return Decision{Message: p.message(r, "with an explicit deny in an identity-based policy"), Reason: s.At + " denies it"}
		case result == yes:
			d.Allowed = true
			d.used = append(d.used, p.grants[grantKey{s, entry}])
		}
	}
	switch {
	case len(d.used) > 0, d.Allowed:
		return d
	case len(p.role.Unknown) > 0:
		d.Allowed, d.Undecided = true, strings.Join(p.role.Unknown, "; ")
		return d
	case nearest == "":
		nearest = "no statement of " + p.role.Name + " has the action"
	}
	d.Message = p.message(r, "because no identity-based policy allows the "+p.spelling(r)+" action")
	d.Reason = nearest
	return d
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
