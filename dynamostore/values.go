package dynamostore

import (
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Args are what the placeholders of an expression stand for: ":amount" for a
// value, by package attributevalue; "#status" for an attribute's name, a string.
type Args map[string]any

// PutValue enlists a put of v, a struct or a map, by package attributevalue. See
// [Write.If] for a condition.
func (t *Tx) PutValue(name, table string, v any) *Write {
	item, err := asMap(v)
	return t.add(&Write{kind: aPut, name: name, table: &table, item: item, err: err})
}

// UpdateValue enlists an update of the item with that key: a struct or a map of
// its key attributes, by package attributevalue.
func (t *Tx) UpdateValue(name, table string, key any, update string, args Args) *Write {
	attrs, err := asMap(key)
	w := &Write{kind: anUpdate, name: name, table: &table, key: attrs, update: &update, err: err}
	w.bind(args)
	return t.add(w)
}

// DeleteValue enlists a delete of the item with that key.
func (t *Tx) DeleteValue(name, table string, key any) *Write {
	attrs, err := asMap(key)
	return t.add(&Write{kind: aDelete, name: name, table: &table, key: attrs, err: err})
}

// CheckValue enlists a condition on the item with that key, which is not written.
func (t *Tx) CheckValue(name, table string, key any, condition string, args Args) *Write {
	attrs, err := asMap(key)
	w := &Write{kind: aCheck, name: name, table: &table, key: attrs, condition: &condition, err: err}
	w.bind(args)
	return t.add(w)
}

// If puts the write under a condition; under both, if it has one. A placeholder
// that the write has already keeps what it stands for: to give it anew is an
// error.
func (w *Write) If(condition string, args Args) *Write {
	w.tx.mu.Lock()
	defer w.tx.mu.Unlock()
	w.tx.mustBeOpen()
	if w.condition != nil {
		condition = "(" + *w.condition + ") AND (" + condition + ")"
	}
	w.condition = aws.String(condition)
	w.bind(args)
	w.tx.failed(w, w.err)
	return w
}

// asMap is a struct or a map as attributes.
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

// bind takes the arguments in. What can't be is the write's error.
func (w *Write) bind(args Args) {
	w.names, w.values = maps.Clone(w.names), maps.Clone(w.values) // they may be the caller's
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
