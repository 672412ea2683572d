package docs_test

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// at returns what is at a path in a value: names of members, and numbers of a list's items.
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

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// number returns a number of a YAML document as JSON has it.
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
