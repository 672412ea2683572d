package memdynamo

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checked returns the value as DynamoDB stores it, with numbers in plain form and sets in order.
// It returns an error if DynamoDB would refuse the value.
func (v Value) checked() (Value, error) { return v.checkedAt(0) }

func (v Value) checkedAt(depth int) (Value, error) {
	if depth >= maxDepth {
		return v, invalidf("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit")
	}
	switch v.Type {
	case "":
		return v, invalidf("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case severalTypes:
		return v, invalidf("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case TypeNull:
		if !v.Bool {
			return v, invalidf("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return Value{Type: TypeNull}, nil
	case TypeNumber:
		n, err := parseNumber(v.Text)
		if errors.Is(err, errNumberSyntax) {
			return v, fmt.Errorf("%w: %s", err, v.Text)
		}
		return numberValue(n), err
	case TypeList:
		list := make([]Value, len(v.List))
		for i, e := range v.List {
			e, err := e.checkedAt(depth + 1)
			if err != nil {
				return v, err
			}
			list[i] = e
		}
		return Value{Type: TypeList, List: list}, nil
	case TypeMap:
		m := make(map[string]Value, len(v.Map))
		for _, name := range slices.Sorted(maps.Keys(v.Map)) {
			if name == "" {
				return v, invalidf("Empty attribute name")
			}
			e, err := v.Map[name].checkedAt(depth + 1)
			if err != nil {
				return v, err
			}
			m[name] = e
		}
		return Value{Type: TypeMap, Map: m}, nil
	case TypeStringSet, TypeNumberSet, TypeBinarySet:
		return v.checkedSet()
	}
	return v, nil
}

// maxDepth is the maximum nesting depth of lists and maps ("Constraints", Nested attribute
// depth).
const maxDepth = 32

func (v Value) checkedSet() (Value, error) {
	const invalid = "One or more parameter values were invalid: "
	if len(v.Set) == 0 {
		kind := map[string]string{
			TypeStringSet: "An string set  may not be empty",
			TypeNumberSet: "An number set  may not be empty",
			TypeBinarySet: "Binary sets should not be empty",
		}[v.Type]
		return v, validationError(invalid + kind)
	}
	set := make([]string, len(v.Set))
	for i, e := range v.Set {
		if v.Type == TypeNumberSet {
			n, err := parseNumber(e)
			if errors.Is(err, errNumberSyntax) {
				return v, fmt.Errorf("%w: %s", err, e)
			}
			if err != nil {
				return v, err
			}
			e = n.String()
		}
		set[i] = e
	}
	out := newSet(v.Type, set)
	if len(out.Set) == len(v.Set) {
		return out, nil
	}
	switch v.Type {
	case TypeStringSet:
		return v, invalidf("%sInput collection [%s] contains duplicates.", invalid, strings.Join(v.Set, ", "))
	case TypeNumberSet:
		return v, invalidf("Input collection contains duplicates")
	default:
		texts := make([]string, len(v.Set))
		for i, e := range v.Set {
			texts[i] = base64.StdEncoding.EncodeToString([]byte(e))
		}
		return v, invalidf("%sInput collection [%s]of type BS contains duplicates.", invalid, strings.Join(texts, ", "))
	}
}

// checkedItem returns the item with all its attributes checked.
func checkedItem(item Item) (Item, error) {
	out := make(Item, len(item))
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if name == "" {
			return nil, invalidf("Empty attribute name")
		}
		v, err := item[name].checked()
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// newSet returns a set with these elements, without duplicates. Elements are sorted by value in
// number sets, and by bytes in other sets.
func newSet(typ string, elements []string) Value {
	set := slices.Clone(elements)
	if typ == TypeNumberSet {
		slices.SortFunc(set, func(a, b string) int { return mustNumber(a).cmp(mustNumber(b)) })
	} else {
		slices.Sort(set)
	}
	return Value{Type: typ, Set: slices.Compact(set)}
}
