package jmeskey

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyOf returns the key that a result stands for, found in document; "" is a missing one.
func keyOf(result, document any) (string, error) {
	switch v := result.(type) {
	case nil:
		return "", nil
	case bool:
		return "", errTruth
	case string:
		return orHash(v, v)
	case json.Number:
		return orHash(v.String(), v)
	case float64: // of length
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any, map[string]any:
		if lacks(v, containersOf(document)) {
			return "", nil
		}
		return lambdaidem.HashKey(v)
	default:
		return "", fmt.Errorf("the result is a %T", v) // the library has no others
	}
}

// orHash returns a text if it is a key by itself, and else the hash of what it is the
// text of, which is "" for an empty text. What begins like a hash is hashed, so that no client can write one.
func orHash(text string, of any) (string, error) {
	if lambdaidem.PrintableKey(text) == nil && !strings.HasPrefix(text, lambdaidem.HashKeyPrefix) {
		return text, nil
	}
	return lambdaidem.HashKey(of)
}

// lacks reports whether something is nothing, or was put together by the expression
// and has a part that is nothing. What stands in the document itself is there,
// whatever it holds.
func lacks(v any, given map[uintptr]bool) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		if len(v) == 0 {
			return true
		}
		if given[identity(v)] {
			return false
		}
		for _, part := range v {
			if lacks(part, given) {
				return true
			}
		}
	case map[string]any:
		if len(v) == 0 {
			return true
		}
		if given[identity(v)] {
			return false
		}
		for _, part := range v {
			if lacks(part, given) {
				return true
			}
		}
	}
	return false
}

// containersOf returns the identities of all lists and objects in a document. An
// expression hands them on as they are, or makes new ones: it changes none.
func containersOf(document any) map[uintptr]bool {
	given := make(map[uintptr]bool)
	var note func(v any)
	note = func(v any) {
		switch v := v.(type) {
		case []any:
			given[identity(v)] = true // empty ones share theirs; they are nothing before this is asked
			for _, element := range v {
				note(element)
			}
		case map[string]any:
			given[identity(v)] = true
			for _, member := range v {
				note(member)
			}
		}
	}
	note(document)
	return given
}

func identity(container any) uintptr { return reflect.ValueOf(container).Pointer() }
