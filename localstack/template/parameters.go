package template

import "strings"

// valueInStore begins the types whose value CloudFormation reads from Parameter Store at deployment ("CloudFormation-supplied
// parameter types"): what a template or a deployment gives is the name there, and what !Ref returns is the value behind it.
// AWS::SSM::Parameter::Name is none of them: its value is the name.
const valueInStore = "AWS::SSM::Parameter::Value<"

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
		return nil, errorAt(at, "parameter %s (%s) is read from Parameter Store, which a local run has not: "+
			"give its value in template.Options.Parameters[%q]%s", name, kind, name, hint)
	case fallback == nil || fallback.kind != scalar:
		return nil, errorAt(at, "parameter %s has no default and no value was given for it: give one in template.Options.Parameters[%q]", name, name)
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
