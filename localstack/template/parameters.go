package template

import (
	"slices"
	"strings"
)

// valueInStore begins the types whose value CloudFormation reads from Parameter Store at deployment ("CloudFormation-supplied
// parameter types"): what a template or a deployment gives is the name there, and what !Ref returns is the value behind it.
// AWS::SSM::Parameter::Name is none of them: its value is the name.
const valueInStore = "AWS::SSM::Parameter::Value<"

// MissingValueError is in the chain of an error of [Read] when values have to be given in [Options]. It names all of them, in
// the order in which the template needs them, except for those that only a given value brings up (by a condition, say).
type MissingValueError struct {
	Parameters []string // keys of Options.Parameters
	References []string // keys of Options.References

	name   string // of the template
	places []error
}

// Error has a line for each value, with its place in the template.
func (e *MissingValueError) Error() string {
	lines := make([]string, len(e.places))
	for i, at := range e.places {
		lines[i] = e.name + ":" + at.Error()
	}
	return strings.Join(lines, "\n")
}

// missingParameter notes that a parameter has no value, and returns a stand-in, so that reading goes on and finds the others.
func (e *evaluator) missingParameter(at *node, name, kind, format string, args ...any) *node {
	if !slices.Contains(e.missing.Parameters, name) {
		e.missing.Parameters = append(e.missing.Parameters, name)
		e.missing.places = append(e.missing.places, errorAt(at, format, args...))
	}
	switch {
	case strings.Contains(kind, "List<"), kind == "CommaDelimitedList":
		return &node{kind: list}
	case kind == "Number":
		return textNode("1")
	default:
		return textNode(name)
	}
}

// missingReference notes that a dynamic reference has no value.
func (e *evaluator) missingReference(at *node, name, format string, args ...any) {
	if !slices.Contains(e.missing.References, name) {
		e.missing.References = append(e.missing.References, name)
		e.missing.places = append(e.missing.places, errorAt(at, format, args...))
	}
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
		return e.missingParameter(at, name, kind, "parameter %s (%s) is read from Parameter Store, which a local run has not: "+
			"give its value in template.Options.Parameters[%q]%s", name, kind, name, hint), nil
	case fallback == nil || fallback.kind != scalar:
		return e.missingParameter(at, name, kind,
			"parameter %s has no default and no value was given for it: give one in template.Options.Parameters[%q]", name, name), nil
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
