package docs_test

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// at returns the value at a path in v, or nil if there is none. A string in the path is the name of an
// object's member, and an int is the index of a list's item.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			items := list(v)
			if s >= len(items) {
				return nil
			}
			v = items[s]
		}
	}
	return v
}

// list returns a list's items, or nil if v is no list.
func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// number returns an int of a YAML document as the float64 that encoding/json decodes, and any other
// value as it is.
func number(v any) any {
	if n, ok := v.(int); ok {
		return float64(n)
	}
	return v
}

func fromYAML(t *testing.T, text string) (value any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
