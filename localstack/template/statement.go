package template

import (
	"fmt"
)

// Statement is a statement of a policy ("IAM JSON policy elements reference"). Read does not check
// the texts.
type Statement struct {
	At           string // path:line:column; for a managed policy, the place where it is named, or the function's
	Policy       string // PolicyName, name of a managed policy or of a SAM policy template; may be empty
	Effect       string // Allow or Deny
	Actions      []string
	NotActions   []string
	Resources    []string
	NotResources []string
	Conditions   []Condition

	// Unknown says which value of the statement only AWS knows. Such a value is missing in
	// the fields above. Unknown is empty if there is none.
	Unknown string
}

// Condition is one key of a Condition element.
type Condition struct {
	Operator string   // such as ForAllValues:StringEquals
	Key      string   // such as dynamodb:LeadingKeys; empty if only AWS knows the keys of the operator
	Values   []string // one of them must match
}

func (r *reader) statement(policy string, n *node) Statement {
	s := Statement{At: fmt.Sprintf("%d:%d", n.line, n.column), Policy: policy, Effect: r.nameOf(n, "Effect")}
	for key, to := range map[string]*[]string{
		"Action": &s.Actions, "NotAction": &s.NotActions, "Resource": &s.Resources, "NotResource": &s.NotResources,
	} {
		*to = r.texts(n.field(key), &s.Unknown)
	}
	conditions := r.branch(n.field("Condition"))
	if conditions == nil {
		return s
	}
	if conditions.kind != mapping {
		s.unknownCondition("", conditions)
	}
	for _, operator := range conditions.keys {
		keys := r.branch(conditions.fields[operator])
		if keys == nil {
			continue
		}
		if keys.kind != mapping {
			s.unknownCondition(operator, keys)
		}
		for _, key := range keys.keys {
			s.Conditions = append(s.Conditions, Condition{operator, key, r.texts(keys.fields[key], &s.Unknown)})
		}
	}
	return s
}

// unknownCondition adds a condition whose keys only AWS knows. Without this condition, the
// statement would apply to every request.
func (s *Statement) unknownCondition(operator string, keys *node) {
	s.Unknown = "the conditions are " + keys.describe()
	s.Conditions = append(s.Conditions, Condition{Operator: operator})
}

// texts returns the texts of a value or of a list. If only AWS knows one of them, texts leaves it
// out and sets unknown to the reason.
func (r *reader) texts(n *node, unknown *string) []string {
	var all []string
	for _, item := range r.entries(n) {
		if arn := r.foreign(item); arn != "" {
			all = append(all, arn)
			continue
		}
		value, why := r.known(item)
		switch {
		case why != "":
			*unknown = why
		case value.kind == scalar:
			all = append(all, value.text)
		case value.kind == list:
			all = append(all, r.texts(value, unknown)...)
		default:
			*unknown = fmt.Sprintf("%d:%d: %s", item.line, item.column, value.describe())
		}
	}
	return all
}
