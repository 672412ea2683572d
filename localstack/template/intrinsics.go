package template

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// evaluator resolves intrinsic functions against one template's parameters,
// conditions, mappings and resources.
type evaluator struct {
	options    Options
	parameters *node
	conditions *node
	mappings   *node
	resources  *node
	pending    map[string]bool // conditions and names under evaluation, to detect cycles
	missing    MissingValueError
}

// eval returns n with every intrinsic function in it resolved.
func (e *evaluator) eval(n *node) (*node, error) {
	switch n.kind {
	case list:
		out := &node{kind: list, line: n.line, column: n.column}
		for _, item := range n.items {
			value, err := e.eval(item)
			if err != nil {
				return nil, err
			}
			if value.kind != noValue {
				out.items = append(out.items, value)
			}
		}
		return out, nil
	case mapping:
		out := &node{kind: mapping, fields: map[string]*node{}, line: n.line, column: n.column}
		for _, key := range n.keys {
			value, err := e.eval(n.fields[key])
			if err != nil {
				return nil, err
			}
			if value.kind != noValue {
				out.keys = append(out.keys, key)
				out.fields[key] = value
			}
		}
		return out, nil
	case call:
		value, err := e.call(n)
		if err != nil {
			return nil, err
		}
		// Errors about the result must refer to the line of the function.
		placed := *value
		placed.line, placed.column = n.line, n.column
		return &placed, nil
	default:
		return n, nil
	}
}

func (e *evaluator) call(n *node) (*node, error) {
	switch n.fn {
	case "Ref":
		name, err := e.text(n.arg, "the argument of !Ref")
		if err != nil {
			return nil, err
		}
		return e.ref(n, name)
	case "GetAtt":
		return e.getAtt(n)
	case "Sub":
		return e.sub(n)
	case "Join":
		return e.join(n)
	case "Select":
		return e.selectItem(n)
	case "Split":
		return e.split(n)
	case "If":
		chosen, err := e.choose(n)
		if err != nil {
			return nil, err
		}
		return e.eval(chosen)
	case "FindInMap":
		return e.findInMap(n)
	case "Equals", "And", "Or", "Not", "Condition":
		holds, err := e.condition(n)
		if err != nil {
			return nil, err
		}
		return textNode(strconv.FormatBool(holds)), nil
	default:
		return nil, &placeError{line: n.line, column: n.column, cause: errElsewhere, message: fmt.Sprintf(
			"the intrinsic function %s is not supported in a local run; "+
				"supported are Ref, GetAtt, Sub, Join, Select, Split, If, FindInMap and the condition functions", n.fn)}
	}
}

// errElsewhere is the cause of an error about a value that only AWS knows, such as an export of
// another stack.
var errElsewhere = errors.New("known to AWS alone")

func textNode(text string) *node { return &node{kind: scalar, text: text} }

func (e *evaluator) ref(at *node, name string) (*node, error) {
	switch name {
	case "AWS::Region":
		return textNode(e.options.Region), nil
	case "AWS::AccountId":
		return textNode(e.options.AccountID), nil
	case "AWS::StackName":
		return textNode(e.options.StackName), nil
	case "AWS::StackId":
		return textNode(e.arn("cloudformation", "stack/"+e.options.StackName+"/local")), nil
	case "AWS::Partition":
		return textNode("aws"), nil
	case "AWS::URLSuffix":
		return textNode("amazonaws.com"), nil
	case "AWS::NoValue":
		return &node{kind: noValue}, nil
	}
	if parameter := e.parameters.field(name); parameter != nil {
		return e.parameter(at, name, parameter)
	}
	if resource := e.resources.field(name); resource != nil {
		physical, err := e.physicalName(name, resource)
		if err != nil {
			return nil, err
		}
		if typeOf(resource) == "AWS::SQS::Queue" {
			return textNode(e.queueURL(physical)), nil
		}
		return textNode(physical), nil
	}
	return nil, errorAt(at, "%s is neither a parameter nor a resource of this template", name)
}

// substitution matches ${Name}, ${Name.Attribute} and the literal ${!Name}.
var substitution = regexp.MustCompile(`\$\{([^}]*)\}`)

func (e *evaluator) sub(n *node) (*node, error) {
	pattern, variables := n.arg, (*node)(nil)
	if n.arg.kind == list {
		if len(n.arg.items) != 2 || n.arg.items[1].kind != mapping {
			return nil, errorAt(n, "!Sub takes a string, or a list of a string and a mapping")
		}
		pattern, variables = n.arg.items[0], n.arg.items[1]
	}
	if pattern.kind != scalar {
		return nil, errorAt(n, "!Sub takes a string, got %s", pattern.describe())
	}
	var failed error
	text := substitution.ReplaceAllStringFunc(pattern.text, func(match string) string {
		name := strings.TrimSpace(match[2 : len(match)-1])
		if literal, ok := strings.CutPrefix(name, "!"); ok {
			return "${" + literal + "}"
		}
		value, err := e.substitute(n, name, variables)
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	if failed != nil {
		return nil, failed
	}
	return textNode(text), nil
}

func (e *evaluator) substitute(at *node, name string, variables *node) (string, error) {
	var value *node
	var err error
	if variable := variables.field(name); variable != nil {
		value, err = e.eval(variable)
	} else if resource, attribute, dotted := strings.Cut(name, "."); dotted {
		value, err = e.attribute(at, resource, attribute)
	} else {
		value, err = e.ref(at, name)
	}
	if err != nil {
		return "", err
	}
	if value.kind != scalar {
		return "", errorAt(at, "${%s} is %s, !Sub needs a string", name, value.describe())
	}
	return value.text, nil
}

func (e *evaluator) join(n *node) (*node, error) {
	args, err := e.arguments(n, 2)
	if err != nil {
		return nil, err
	}
	separator, err := e.text(args[0], "the separator of !Join")
	if err != nil {
		return nil, err
	}
	if args[1].kind != list {
		return nil, errorAt(n, "!Join takes a separator and a list, got %s", args[1].describe())
	}
	parts := make([]string, 0, len(args[1].items))
	for _, item := range args[1].items {
		part, err := e.text(item, "an item of !Join")
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return textNode(strings.Join(parts, separator)), nil
}

func (e *evaluator) selectItem(n *node) (*node, error) {
	args, err := e.arguments(n, 2)
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(args[0].text)
	if err != nil || args[1].kind != list || index < 0 || index >= len(args[1].items) {
		return nil, errorAt(n, "!Select takes an index within its list and the list, got %s and %s", args[0].describe(), args[1].describe())
	}
	return args[1].items[index], nil
}

func (e *evaluator) split(n *node) (*node, error) {
	args, err := e.arguments(n, 2)
	if err != nil {
		return nil, err
	}
	if args[0].kind != scalar || args[0].text == "" || args[1].kind != scalar {
		return nil, errorAt(n, "!Split takes a separator and a string, got %s and %s", args[0].describe(), args[1].describe())
	}
	out := &node{kind: list}
	for part := range strings.SplitSeq(args[1].text, args[0].text) {
		out.items = append(out.items, textNode(part))
	}
	return out, nil
}

func (e *evaluator) findInMap(n *node) (*node, error) {
	args, err := e.arguments(n, 3)
	if err != nil {
		return nil, err
	}
	at := e.mappings
	for _, arg := range args {
		key, err := e.text(arg, "an argument of !FindInMap")
		if err != nil {
			return nil, err
		}
		if at = at.field(key); at == nil {
			return nil, errorAt(n, "!FindInMap: there is no %q in Mappings", key)
		}
	}
	return at, nil
}

// arguments evaluates the argument list of a call.
func (e *evaluator) arguments(n *node, count int) ([]*node, error) {
	if n.arg.kind != list || len(n.arg.items) != count {
		return nil, errorAt(n, "!%s takes a list of %d arguments", n.fn, count)
	}
	out := make([]*node, 0, len(n.arg.items))
	for _, item := range n.arg.items {
		value, err := e.eval(item)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// text evaluates n and returns the result, which must be a scalar. what names n in an error.
func (e *evaluator) text(n *node, what string) (string, error) {
	value, err := e.eval(n)
	if err != nil {
		return "", err
	}
	if value.kind != scalar {
		return "", errorAt(n, "%s must be text, got %s", what, value.describe())
	}
	return value.text, nil
}
