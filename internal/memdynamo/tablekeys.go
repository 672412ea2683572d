package memdynamo

import (
	"fmt"
	"strings"
)

type keyAttribute struct {
	name string
	typ  string // S, N or B
	role string // HASH or RANGE
}

// keyOf returns the key attributes of an item.
func (t *table) keyOf(item Item) Item {
	key := make(Item, len(t.keys))
	for _, k := range t.keys {
		if v, ok := item[k.name]; ok {
			key[k.name] = v
		}
	}
	return key
}

// encode returns a key as text. Different keys have different texts.
func (t *table) encode(key Item) string {
	var b strings.Builder
	for _, k := range t.keys {
		text := key[k.name].Text
		_, _ = fmt.Fprintf(&b, "%d:%s", len(text), text)
	}
	return b.String()
}

// isKey reports whether the attribute is part of the key.
func (t *table) isKey(name string) bool {
	for _, k := range t.keys {
		if k.name == name {
			return true
		}
	}
	return false
}

// checkItem returns an error if the item lacks a valid key.
func (t *table) checkItem(item Item) error {
	for _, k := range t.keys {
		v, ok := item[k.name]
		switch {
		case !ok:
			return invalidf("One or more parameter values were invalid: Missing the key %s in the item", k.name)
		case v.Type != k.typ:
			return invalidf("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", k.name, k.typ, v.Type)
		}
		if err := k.check(v); err != nil {
			return err
		}
	}
	return nil
}

// checkKey returns an error unless key has exactly the table's key attributes, with valid values.
func (t *table) checkKey(key Item) error {
	for _, k := range t.keys {
		if v, ok := key[k.name]; !ok || v.Type != k.typ || len(key) != len(t.keys) {
			return invalidf("The provided key element does not match the schema")
		}
		if err := k.check(key[k.name]); err != nil {
			return err
		}
	}
	return nil
}

func (k keyAttribute) check(v Value) error {
	const maxHash, maxRange = 2048, 1024 // bytes ("Constraints", Partition keys and sort keys)
	if v.Type == TypeNumber {
		return nil
	}
	if err := k.checkEmpty(v); err != nil {
		return err
	}
	switch {
	case k.role == "HASH" && len(v.Text) > maxHash:
		return invalidf("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	case k.role == "RANGE" && len(v.Text) > maxRange:
		return invalidf("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// checkEmpty returns an error if v has the type of the key and is empty.
func (k keyAttribute) checkEmpty(v Value) error {
	kind := map[string]string{TypeString: "string", TypeBinary: "binary"}[k.typ]
	if kind == "" || v.Type != k.typ || v.Text != "" {
		return nil
	}
	return invalidf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", kind, k.name)
}

// checkPaths refuses paths into a key attribute, which has no inner values.
func (t *table) checkPaths(paths []path) error {
	for _, p := range paths {
		if len(p) > 1 && t.isKey(p[0].name) {
			return invalidf("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s", p[0].name)
		}
	}
	return nil
}

// checkWritten refuses an update that writes to a key attribute.
func (t *table) checkWritten(paths projection) error {
	for _, p := range paths {
		if t.isKey(p[0].name) {
			return invalidf("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", p[0].name)
		}
	}
	return nil
}
