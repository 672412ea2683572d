package lambdaidem

import (
	"fmt"
	"slices"
	"strings"
)

// mustJSON returns v, a part of a stream record, as JSON. It sorts the members of sets: a DynamoDB
// set has no order, but equal sets must yield equal JSON. It panics if v can't be encoded. That
// does not happen, because Lambda has decoded v from JSON.
func mustJSON(v any) string {
	text, err := toJSON(v)
	var tree any
	if err == nil {
		tree, err = fromJSON[any](text, true)
	}
	if err == nil {
		text, err = toJSON(sortedSets(tree))
	}
	if err != nil {
		panic(fmt.Sprintf("lambdaidem: a record of a stream can't be written as JSON again: %v", err))
	}
	return string(text)
}

// sortedSets sorts the members of every set in v and returns v, so that equal sets yield equal
// JSON. v is decoded JSON of DynamoDB attribute values. In such JSON, a list under the name SS,
// NS or BS is always a set.
func sortedSets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = sortedSets(member)
			if list, ok := member.([]any); ok && (name == "SS" || name == "NS" || name == "BS") {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case []any:
		for i, member := range v {
			v[i] = sortedSets(member)
		}
	}
	return v
}
