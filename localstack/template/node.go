package template

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

type kind int

const (
	null kind = iota
	scalar
	list
	mapping
	call    // an intrinsic function, not yet evaluated
	noValue // what AWS::NoValue leaves behind: the property is removed
)

// node is one value of the template with the place where it was written.
type node struct {
	kind   kind
	text   string // of a scalar
	items  []*node
	keys   []string // of a mapping, in the template's order
	fields map[string]*node
	fn     string // of a call: the short name, "Ref" or "Sub"
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
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("the template is empty")
	}
	c := converter{anchors: map[string]*node{}}
	return c.convert(file.Docs[0].Body)
}

// converter turns the YAML library's tree into nodes, so that the rest of the
// package sees both spellings of an intrinsic function (!Sub x and
// {"Fn::Sub": x}) as one.
type converter struct {
	anchors map[string]*node
}

func (c *converter) convert(n ast.Node) (*node, error) {
	position := n.GetToken().Position
	out := &node{line: position.Line, column: position.Column}
	switch n := n.(type) {
	case *ast.NullNode:
		return out, nil
	case *ast.TagNode:
		arg, err := c.convert(n.Value)
		if err != nil {
			return nil, err
		}
		tag := n.Start.Value
		if strings.HasPrefix(tag, "!!") { // a core YAML tag such as !!str
			return arg, nil
		}
		out.kind, out.fn, out.arg = call, strings.TrimPrefix(tag, "!"), arg
		if out.fn == "GetAtt" && arg.kind == scalar {
			out.arg = splitGetAtt(arg)
		}
		return out, nil
	case *ast.AnchorNode:
		value, err := c.convert(n.Value)
		if err != nil {
			return nil, err
		}
		c.anchors[n.Name.GetToken().Value] = value
		return value, nil
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		value, ok := c.anchors[name]
		if !ok {
			return nil, errorAt(out, "alias *%s has no anchor before it", name)
		}
		return value, nil
	case *ast.SequenceNode:
		out.kind = list
		for _, item := range n.Values {
			value, err := c.convert(item)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, value)
		}
		return out, nil
	case *ast.MappingValueNode:
		return c.mapping(out, []*ast.MappingValueNode{n})
	case *ast.MappingNode:
		return c.mapping(out, n.Values)
	case *ast.LiteralNode:
		out.kind, out.text = scalar, n.Value.Value
		return out, nil
	case *ast.StringNode:
		out.kind, out.text = scalar, n.Value
		return out, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = scalar, n.GetToken().Value
		return out, nil
	default:
		return nil, errorAt(out, "YAML of type %s is not understood here", n.Type())
	}
}

func (c *converter) mapping(out *node, values []*ast.MappingValueNode) (*node, error) {
	out.kind, out.fields = mapping, map[string]*node{}
	if len(values) > 0 { // a mapping's own token is a colon
		position := values[0].Key.GetToken().Position
		out.line, out.column = position.Line, position.Column
	}
	for _, pair := range values {
		if pair.Key.IsMergeKey() {
			return nil, errorAt(out, "YAML merge keys (<<) are not supported by CloudFormation; write the properties out")
		}
		key := pair.Key.GetToken().Value
		value, err := c.convert(pair.Value)
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
	// The YAML library misreads the unquoted key of {Fn::Sub: x}.
	if inner := out.fields[key]; key == "Fn" && strings.HasPrefix(inner.text, ":") {
		return nil, errorAt(out, "in braces an intrinsic function's key needs quotes: {\"Fn::...\": ...}; or use the short form, such as !Sub")
	}
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

// splitGetAtt turns Name.Attribute into the list form of GetAtt.
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
	cause        error // nil, or what a caller may want to know
}

func (e *placeError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.message)
}

func (e *placeError) Unwrap() error { return e.cause }

func errorAt(n *node, format string, args ...any) error {
	return &placeError{line: n.line, column: n.column, message: fmt.Sprintf(format, args...)}
}
