package template

import (
	"slices"
	"strings"
)

// valueInStore is the prefix of the parameter types whose value CloudFormation reads from Parameter Store at deployment
// ("CloudFormation-supplied parameter types"). A template or a deployment gives the name in Parameter Store, and !Ref
// returns the value that is stored there. AWS::SSM::Parameter::Name is not such a type, because its value is the name.
const valueInStore = "AWS::SSM::Parameter::Value<"

// MissingValueError means that values are missing in [Options]. It is in the chain of an error of [Read], and names all
// missing values, in the order in which the template needs them. Further values may be missing once these are given, for
// example because of a condition.
type MissingValueError struct {
	Parameters []string // keys of Options.Parameters
	References []string // keys of Options.References

	name   string // name of the template
	places []error
}

// Error returns a line for each missing value, with its position in the template.
func (e *MissingValueError) Error() string {
	lines := make([]string, len(e.places))
	for i, at := range e.places {
		lines[i] = e.name + ":" + at.Error()
	}
	return strings.Join(lines, "\n")
}

// missingParameter records that a parameter has no value. It returns a placeholder of the parameter's type, so that
// reading continues and finds further missing values.
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

// missingReference records that a dynamic reference has no value.
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

// allowed returns an error if values is not nil and does not have the value. Don't call it for a parameter whose value is
// in Parameter Store, because the AllowedValues of such a parameter are names, not values.
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
