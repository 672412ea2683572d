package template

import (
	"strings"
)

func (e *evaluator) parameter(at *node, name string, parameter *node) (*node, error) {
	value, given := e.options.Parameters[name]
	if !given {
		fallback := parameter.field("Default")
		if fallback == nil || fallback.kind != scalar {
			return nil, errorAt(at, "parameter %s has no default and no value was given for it", name)
		}
		value = fallback.text
	}
	kind := parameter.field("Type")
	if kind != nil && strings.HasPrefix(kind.text, "AWS::SSM::") {
		return nil, errorAt(at, "parameter %s is read from Parameter Store (%s), which a local run has not; give it a value", name, kind.text)
	}
	if allowed := parameter.field("AllowedValues"); allowed != nil && allowed.kind == list {
		found := false
		for _, item := range allowed.items {
			found = found || item.text == value
		}
		if !found {
			return nil, errorAt(allowed, "parameter %s is %q, which is not one of its AllowedValues", name, value)
		}
	}
	if kind != nil && (kind.text == "CommaDelimitedList" || strings.HasPrefix(kind.text, "List<")) {
		out := &node{kind: list}
		for part := range strings.SplitSeq(value, ",") {
			out.items = append(out.items, textNode(strings.TrimSpace(part)))
		}
		return out, nil
	}
	return textNode(value), nil
}
