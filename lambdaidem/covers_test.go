package lambdaidem

import "testing"

func TestR1_Covers(t *testing.T) {
	list, object := func(v ...any) any { return v }, func(name string, v any) any { return map[string]any{name: v} }
	for _, c := range []struct {
		whole, part any
		want        bool
	}{
		{list(), list(), true},
		{"", list(), false},
		{nil, list(), false},
		{list("a"), list(), false},
		{list("a"), list("a"), true},
		{list("a"), list("b"), false},
		{object("a", "b"), object("a", "b"), true},
		{object("a", "b"), map[string]any{}, true},
		{list(), map[string]any{}, false},
		{object("a", "b"), object("c", "b"), false},
		{"a", "a", true},
		{"a", "b", false},
	} {
		if got := covers(c.whole, c.part); got != c.want {
			t.Errorf("covers(%v, %v) is %v", c.whole, c.part, got)
		}
	}
}
