package dynamostore

import (
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Args maps the placeholders of an expression to their values. The value of a placeholder
// such as ":amount" is encoded by package attributevalue. The value of a placeholder such
// as "#status" is a string, the name of an attribute.
type Args map[string]any

// PutValue enlists a put of the item v, a struct or a map that package attributevalue
// encodes. name identifies the write in errors, and no other write of the transaction may
// have it. Use [Write.If] to add a condition.
func (t *Tx) PutValue(name, table string, v any) *Write {
	item, err := asMap(v)
	return t.add(&Write{kind: aPut, name: name, table: &table, item: item, err: err})
}

// UpdateValue enlists an update of the item with the given key. The key is a struct or a
// map of the item's key attributes, which package attributevalue encodes. update is the
// UpdateExpression, and args has the values of its placeholders. See [Tx.PutValue] for name.
func (t *Tx) UpdateValue(name, table string, key any, update string, args Args) *Write {
	attrs, err := asMap(key)
	w := &Write{kind: anUpdate, name: name, table: &table, key: attrs, update: &update, err: err}
	w.bind(args)
	return t.add(w)
}

// DeleteValue enlists a delete of the item with the given key. For name and key, see
// [Tx.UpdateValue].
func (t *Tx) DeleteValue(name, table string, key any) *Write {
	attrs, err := asMap(key)
	return t.add(&Write{kind: aDelete, name: name, table: &table, key: attrs, err: err})
}

// CheckValue is like [Tx.Check], but takes the key and args as Go values. The item is not written.
// If the condition fails, none of the transaction's writes is made. For name, key and args, see
// [Tx.UpdateValue].
func (t *Tx) CheckValue(name, table string, key any, condition string, args Args) *Write {
	attrs, err := asMap(key)
	w := &Write{kind: aCheck, name: name, table: &table, key: attrs, condition: &condition, err: err}
	w.bind(args)
	return t.add(w)
}

// asMap encodes a struct or a map as attributes.
func asMap(v any) (attributes, error) {
	attr, err := attributevalue.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a %T can't be encoded: %w", v, err)
	}
	m, ok := attr.(*types.AttributeValueMemberM)
	if !ok || len(m.Value) == 0 {
		return nil, fmt.Errorf("a %T has no attributes: an item or a key is a struct or a map", v)
	}
	return m.Value, nil
}

// bind adds the arguments to the write's names and values. It stores the first error
// in w.err.
func (w *Write) bind(args Args) {
	w.names, w.values = maps.Clone(w.names), maps.Clone(w.values) // the maps may belong to the caller
	for placeholder, v := range args {
		if err := w.bindOne(placeholder, v); err != nil && w.err == nil {
			w.err = err
		}
	}
}

func (w *Write) bindOne(placeholder string, v any) error {
	_, name := w.names[placeholder]
	_, value := w.values[placeholder]
	switch {
	case name || value:
		return fmt.Errorf("%s is given twice", placeholder)
	case strings.HasPrefix(placeholder, "#"):
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s is a %T; an attribute's name is a string", placeholder, v)
		}
		if w.names == nil {
			w.names = map[string]string{}
		}
		w.names[placeholder] = s
	case strings.HasPrefix(placeholder, ":"):
		attr, err := attributevalue.Marshal(v)
		if err == nil && attr == nil {
			err = fmt.Errorf("a %T is no value of an attribute", v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", placeholder, err)
		}
		if w.values == nil {
			w.values = attributes{}
		}
		w.values[placeholder] = attr
	default:
		return fmt.Errorf("the placeholder %q must begin with : (a value) or # (a name)", placeholder)
	}
	return nil
}
