package template

import (
	"fmt"
	"strings"
)

// valueInStore begins the types whose value CloudFormation reads from Parameter Store at deployment ("CloudFormation-supplied
// parameter types"): what a template or a deployment gives is the name there, and what !Ref returns is the value behind it.
// AWS::SSM::Parameter::Name is none of them: its value is the name.
const valueInStore = "AWS::SSM::Parameter::Value<"

// MissingValueError is in the chain of an error of [Read] when a value has to be given in [Options]: one of the two is set.
type MissingValueError struct {
	Parameter string // a key of Options.Parameters
	Reference string // a key of Options.References
}

func (e *MissingValueError) Error() string {
	return "no value was given for " + e.Parameter + e.Reference
}

// missingAt is errorAt for a value that a caller could have given.
func missingAt(n *node, missing MissingValueError, format string, args ...any) error {
	return &placeError{line: n.line, column: n.column, message: fmt.Sprintf(format, args...), cause: &missing}
}

func (e *evaluator) parameter(at *node, name string, parameter *node) (*node, error) {
	kind := ""
	if n := parameter.field("Type"); n != nil {
		kind = n.text
	}
	stored, inStore := strings.CutPrefix(kind, valueInStore)
	value, given := e.options.Parameters[name]
	fallback := parameter.field("Default")
	switch {
	case given:
	case inStore:
		hint := ""
		if fallback != nil && fallback.kind == scalar {
			hint = "; its Default " + fallback.text + " is its name there, not its value"
		}
		return nil, missingAt(at, MissingValueError{Parameter: name}, "parameter %s (%s) is read from Parameter Store, which a local run has not: "+
			"give its value in template.Options.Parameters[%q]%s", name, kind, name, hint)
	case fallback == nil || fallback.kind != scalar:
		return nil, missingAt(at, MissingValueError{Parameter: name},
			"parameter %s has no default and no value was given for it: give one in template.Options.Parameters[%q]", name, name)
	default:
		value = fallback.text
	}
	if inStore {
		kind = strings.TrimSuffix(stored, ">")
	} else if err := allowed(name, value, parameter.field("AllowedValues")); err != nil {
		return nil, err
	}
	if kind == "CommaDelimitedList" || strings.HasPrefix(kind, "List<") {
		out := &node{kind: list}
		for part := range strings.SplitSeq(value, ",") {
			out.items = append(out.items, textNode(strings.TrimSpace(part)))
		}
		return out, nil
	}
	return textNode(value), nil
}

// allowed checks a value against AllowedValues; nil allows all. Those of a parameter that is in Parameter Store are names
// there, so they say nothing of its value.
func allowed(name, value string, values *node) error {
	if values == nil || values.kind != list {
		return nil
	}
	for _, item := range values.items {
		if item.text == value {
			return nil
		}
	}
	return errorAt(values, "parameter %s is %q, which is not one of its AllowedValues", name, value)
}
