package template

import (
	"strconv"
)

// properties are the Properties of a resource, merged with the Globals for its type.
type properties struct {
	reader *reader
	owner  string // the logical ID and the path below it, for errors
	node   *node
}

func (r *reader) properties(logicalID, globals string, resource *node) properties {
	own := resource.field("Properties")
	if own == nil {
		own = &node{kind: mapping, fields: map[string]*node{}, line: resource.line, column: resource.column}
	}
	return properties{r, logicalID, merge(r.globals.field(globals), own)}
}

// merge combines the global and a resource's own value as the page "Globals section of the AWS
// SAM template" describes: mappings are merged, lists are concatenated, and own replaces any
// other value.
func merge(global, own *node) *node {
	switch {
	case global == nil:
		return own
	case own == nil:
		return global
	case global.kind == mapping && own.kind == mapping:
		out := &node{kind: mapping, fields: map[string]*node{}, line: own.line, column: own.column}
		for _, key := range global.keys {
			out.keys = append(out.keys, key)
			out.fields[key] = merge(global.fields[key], own.fields[key])
		}
		for _, key := range own.keys {
			if _, done := out.fields[key]; !done {
				out.keys = append(out.keys, key)
				out.fields[key] = own.fields[key]
			}
		}
		return out
	case global.kind == list && own.kind == list:
		return &node{
			kind: list, line: own.line, column: own.column,
			items: append(append([]*node{}, global.items...), own.items...),
		}
	default:
		return own
	}
}

// get evaluates a property. It returns nil if the property is absent, null or AWS::NoValue.
func (p properties) get(key string) (*node, error) {
	raw := p.node.field(key)
	if raw == nil {
		return nil, nil
	}
	value, err := p.reader.value(raw)
	if err != nil {
		return nil, err
	}
	if value.kind == noValue || value.kind == null {
		return nil, nil
	}
	return value, nil
}

// text returns a scalar property, or fallback if the property is absent.
func (p properties) text(key, fallback string) (string, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return fallback, err
	}
	if value.kind != scalar {
		return "", errorAt(value, "%s: %s must be text, got %s", p.owner, key, value.describe())
	}
	return value.text, nil
}

// number returns an integer property from least to most, or fallback if the property is absent.
func (p properties) number(key string, fallback, least, most int) (int, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return fallback, err
	}
	number, err := strconv.Atoi(value.text)
	if value.kind != scalar || err != nil || number < least || number > most {
		return 0, errorAt(value, "%s: %s must be a whole number from %d to %d, got %s", p.owner, key, least, most, value.describe())
	}
	return number, nil
}

// texts returns a property that is a list of scalars, or nil if the property is absent.
func (p properties) texts(key string) ([]string, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return nil, err
	}
	if value.kind != list {
		return nil, errorAt(value, "%s: %s must be a list, got %s", p.owner, key, value.describe())
	}
	var out []string
	for _, item := range value.items {
		if item.kind != scalar {
			return nil, errorAt(item, "%s: %s must be a list of texts, got %s in it", p.owner, key, item.describe())
		}
		out = append(out, item.text)
	}
	return out, nil
}

// inner returns a property that is a mapping. The values in the mapping are evaluated only when
// they are read. If the property is absent, ok is false and inner has no fields.
func (p properties) inner(key string) (inner properties, ok bool, err error) {
	inner = properties{p.reader, p.owner + "." + key, p.node.field(key)}
	if inner.node != nil && inner.node.kind == call {
		if inner.node, err = p.get(key); err != nil {
			return properties{}, false, err
		}
	}
	if inner.node == nil || inner.node.kind == null {
		inner.node = &node{kind: mapping, line: p.node.line, column: p.node.column}
		return inner, false, nil
	}
	if inner.node.kind != mapping {
		return properties{}, false, errorAt(inner.node, "%s: %s must be a mapping, got %s", p.owner, key, inner.node.describe())
	}
	return inner, true, nil
}
