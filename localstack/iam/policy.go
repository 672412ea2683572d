package iam

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// statement is a valid statement of a policy, with its conditions parsed.
type statement struct {
	template.Statement
	deny       bool
	conditions []condition
	grants     map[string]*grant // by the entry that action returns; not used if the statement denies
}

// services lists the services that run locally. Permissions for any other service are not checked.
var services = []string{"dynamodb", "sqs"}

// concerns reports whether an action, or a pattern of actions, belongs to DynamoDB or SQS.
func concerns(action string) bool {
	service, _, _ := strings.Cut(action, ":")
	for _, s := range services {
		if matchesFold(service, s) {
			return true
		}
	}
	return false
}

// matters reports whether a statement can apply to a request to DynamoDB or SQS.
func matters(s template.Statement) bool {
	if len(s.NotActions) > 0 {
		return true
	}
	for _, action := range s.Actions {
		if concerns(action) {
			return true
		}
	}
	return false
}

var (
	actionForm   = regexp.MustCompile(`^(\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+)$`)
	resourceForm = regexp.MustCompile(`^(\*|arn:[^:]*:[^:]*:.*|.*\$\{.*)$`)
)

// newStatement returns an error for a statement that AWS would refuse, or that has an unknown
// condition operator.
func newStatement(s template.Statement) (*statement, error) {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Effect != "Allow" && s.Effect != "Deny" {
		wrong("Effect is %q; it must be Allow or Deny", s.Effect)
	}
	if (len(s.Actions) > 0) == (len(s.NotActions) > 0) && s.Unknown == "" {
		wrong("a statement must have either Action or NotAction")
	}
	if (len(s.Resources) > 0) == (len(s.NotResources) > 0) && s.Unknown == "" {
		wrong("a statement must have either Resource or NotResource")
	}
	for _, action := range slices.Concat(s.Actions, s.NotActions) {
		if !actionForm.MatchString(action) {
			wrong("the action %q is not of the form service:Action", action)
		}
	}
	for _, resource := range slices.Concat(s.Resources, s.NotResources) {
		if !resourceForm.MatchString(resource) {
			wrong("the resource %q is neither an ARN nor *; the ARN of a table or a queue of this template is !GetAtt NAME.Arn", resource)
		}
	}
	out := &statement{Statement: s, deny: s.Effect == "Deny", grants: map[string]*grant{}}
	for _, c := range s.Conditions {
		compiled, err := newCondition(c)
		if err != nil {
			errs = append(errs, err)
		}
		out.conditions = append(out.conditions, compiled)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: AWS refuses this policy, or a local run can't check it: %w", s.At, err)
	}
	for _, action := range s.Actions {
		out.grants[action] = &grant{action: action}
	}
	if len(s.NotActions) > 0 {
		out.grants["NotAction"] = &grant{action: "everything but " + strings.Join(s.NotActions, ", ")}
	}
	return out, nil
}

// action returns the entry of Action that a request matches. For a statement with NotAction,
// it returns "NotAction".
func (s *statement) action(request *Request) (entry string, ok bool) {
	for _, pattern := range s.Actions {
		if matchesFold(pattern, request.Action) {
			return pattern, true
		}
	}
	if len(s.NotActions) == 0 {
		return "", false
	}
	for _, pattern := range s.NotActions {
		if matchesFold(pattern, request.Action) {
			return "", false
		}
	}
	return "NotAction", true
}

// applies reports whether the resources and the conditions of the statement match a request whose
// action matches already. Unless the result is yes, why gives the reason.
func (s *statement) applies(request *Request, keys Keys) (result truth, why string) {
	switch result = s.resource(request, keys); {
	case result == no && len(s.NotResources) > 0:
		why = "not on " + strings.Join(s.NotResources, ", ")
	case result == no:
		why = "only on " + strings.Join(s.Resources, ", ")
	case result == undecided:
		why = "only AWS knows the value of a variable in its resources"
	}
	for i := range s.conditions {
		if result == no {
			break
		}
		c := &s.conditions[i]
		switch c.holds(keys) {
		case no:
			result, why = no, "the condition "+c.text+" does not hold"
		case undecided:
			result, why = undecided, "the condition "+c.text+" depends on what only AWS knows"
		case yes:
		}
	}
	if s.Unknown != "" && (result == no || len(s.conditions) > 0) {
		return undecided, "it has a value that only AWS knows: " + s.Unknown
	}
	return result, why
}

func (s *statement) resource(request *Request, keys Keys) truth {
	list, listed, others := s.Resources, yes, no
	if len(s.NotResources) > 0 {
		list, listed, others = s.NotResources, no, yes
	}
	for _, resource := range list {
		pattern, known := keys.expand(resource)
		switch {
		case known == undecided:
			others = undecided
		case known == yes && matches(pattern, request.Resource):
			return listed
		}
	}
	return others
}
