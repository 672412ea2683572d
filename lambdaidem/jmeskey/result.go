package jmeskey

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyOf returns the key for result, which an expression has found in document. It returns ""
// if the key is missing; see isMissing.
func keyOf(result, document any) (string, error) {
	switch v := result.(type) {
	case nil:
		return "", nil
	case bool:
		return "", errBoolean
	case string:
		return orHash(v, v)
	case json.Number:
		return orHash(v.String(), v)
	case float64: // only the function length returns one
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any, map[string]any:
		if isMissing(v, containersOf(document)) {
			return "", nil
		}
		return lambdaidem.HashKey(v)
	default:
		return "", fmt.Errorf("the result is a %T", v) // can't happen: the library has no other types
	}
}

// orHash returns text if it is a valid key. Otherwise it returns the hash of value, from which text
// was made, or "" if text is empty. A text that begins like a hash is hashed too, so that a
// client can't send the hash of another value as its key.
func orHash(text string, value any) (string, error) {
	if lambdaidem.PrintableKey(text) == nil && !strings.HasPrefix(text, lambdaidem.HashKeyPrefix) {
		return text, nil
	}
	return lambdaidem.HashKey(value)
}

// isMissing reports whether v counts as missing: v is null or an empty string, list or object. A
// list or object that the expression built also counts as missing if one of its parts does.
// inDocument has the addresses of the lists and objects that the expression did not build, because
// they are part of the document; see containersOf.
func isMissing(v any, inDocument map[uintptr]bool) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		if len(v) == 0 {
			return true
		}
		if inDocument[identity(v)] {
			return false
		}
		for _, part := range v {
			if isMissing(part, inDocument) {
				return true
			}
		}
	case map[string]any:
		if len(v) == 0 {
			return true
		}
		if inDocument[identity(v)] {
			return false
		}
		for _, part := range v {
			if isMissing(part, inDocument) {
				return true
			}
		}
	}
	return false
}

// containersOf returns the addresses of all lists and objects in a document. A list or object that
// an expression selects from the document keeps its address. A list or object with any other
// address was therefore built by the expression.
func containersOf(document any) map[uintptr]bool {
	inDocument := make(map[uintptr]bool)
	var note func(v any)
	note = func(v any) {
		switch v := v.(type) {
		case []any:
			inDocument[identity(v)] = true // all empty lists share one address, but isMissing never asks for it
			for _, element := range v {
				note(element)
			}
		case map[string]any:
			inDocument[identity(v)] = true
			for _, member := range v {
				note(member)
			}
		}
	}
	note(document)
	return inDocument
}

// identity returns the address of the memory of a list or object.
func identity(container any) uintptr { return reflect.ValueOf(container).Pointer() }
