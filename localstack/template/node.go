package template

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

type kind int

const (
	null kind = iota
	scalar
	list
	mapping
	call    // an intrinsic function, not yet evaluated
	noValue // the result of AWS::NoValue, which removes the property
)

// node is a value of the template, with its position in the file.
type node struct {
	kind   kind
	text   string // value of a scalar
	items  []*node
	keys   []string // keys of a mapping, in the template's order
	fields map[string]*node
	fn     string // name of a call's function without the prefix Fn::, such as "Ref" or "Sub"
	arg    *node
	line   int
	column int
}

// field returns a mapping's field, or nil if there is no such field.
func (n *node) field(key string) *node {
	if n == nil || n.kind != mapping {
		return nil
	}
	return n.fields[key]
}

func (n *node) describe() string {
	switch n.kind {
	case null:
		return "nothing"
	case scalar:
		return fmt.Sprintf("%q", n.text)
	case list:
		return "a list"
	case mapping:
		return "a mapping"
	case noValue:
		return "AWS::NoValue"
	default:
		return "!" + n.fn
	}
}

func parseYAML(data []byte) (*node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("the template is empty")
	}
	return convert(doc.Content[0])
}

// convert converts a tree of the YAML library into nodes. Both spellings of an intrinsic
// function (!Sub x and {"Fn::Sub": x}) become the same node.
func convert(n *yaml.Node) (*node, error) {
	out, err := converted(n)
	if err != nil || !strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!") { // a core YAML tag such as !!str
		return out, err
	}
	call := &node{kind: call, fn: n.Tag[1:], arg: out, line: n.Line, column: n.Column}
	if call.fn == "GetAtt" && out.kind == scalar {
		call.arg = splitGetAtt(out)
	}
	return call, nil
}

// converted converts a node, and ignores its tag.
func converted(n *yaml.Node) (*node, error) {
	out := &node{line: n.Line, column: n.Column}
	switch n.Kind { //nolint:exhaustive // a document has been taken apart, and scalars are below
	case yaml.AliasNode:
		return convert(n.Alias)
	case yaml.SequenceNode:
		out.kind = list
		for _, item := range n.Content {
			value, err := convert(item)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, value)
		}
		return out, nil
	case yaml.MappingNode:
		return mappingOf(out, n.Content)
	}
	if n.ShortTag() != "!!null" {
		out.kind, out.text = scalar, n.Value
	}
	return out, nil
}

// mappingOf converts a mapping into out, or into a call if it is an intrinsic function. content
// has each key before its value.
func mappingOf(out *node, content []*yaml.Node) (*node, error) {
	out.kind, out.fields = mapping, map[string]*node{}
	for pair := range slices.Chunk(content, 2) {
		if pair[0].Tag == "!!merge" {
			return nil, errorAt(out, "YAML merge keys (<<) are not supported by CloudFormation; write the properties out")
		}
		key := pair[0].Value
		value, err := convert(pair[1])
		if err != nil {
			return nil, err
		}
		if _, twice := out.fields[key]; twice {
			return nil, errorAt(value, "%s is given twice", key)
		}
		out.keys = append(out.keys, key)
		out.fields[key] = value
	}
	if len(out.keys) != 1 {
		return out, nil
	}
	key := out.keys[0]
	short, isFunction := strings.CutPrefix(key, "Fn::")
	if !isFunction && key != "Ref" {
		return out, nil
	}
	arg := out.fields[key]
	if short == "GetAtt" && arg.kind == scalar {
		arg = splitGetAtt(arg)
	}
	return &node{kind: call, fn: short, arg: arg, line: out.line, column: out.column}, nil
}

// splitGetAtt converts Name.Attribute into the list form of GetAtt's argument.
func splitGetAtt(n *node) *node {
	name, attribute, _ := strings.Cut(n.text, ".")
	part := func(text string) *node {
		return &node{kind: scalar, text: text, line: n.line, column: n.column}
	}
	return &node{kind: list, items: []*node{part(name), part(attribute)}, line: n.line, column: n.column}
}

// placeError is an error at a line and column of the template.
type placeError struct {
	line, column int
	message      string
	cause        error // errElsewhere if only AWS knows the value, otherwise nil
}

func (e *placeError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.message)
}

func (e *placeError) Unwrap() error { return e.cause }

func errorAt(n *node, format string, args ...any) error {
	return &placeError{line: n.line, column: n.column, message: fmt.Sprintf(format, args...)}
}
