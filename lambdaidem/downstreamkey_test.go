package lambdaidem

import (
	"testing"

	"pgregory.net/rapid"
)

// Every later version must return the same keys, because a service may already have received them.
func TestE6_GoldenDownstreamKeys(t *testing.T) {
	for _, c := range []struct {
		id   string
		name string
		want string
	}{
		{"lambdaidem#YWJj", "charge", "f2efb046-77dd-8707-9086-3bc523ad4230"},
		{"lambdaidem#YWJj", "", "02e83c4a-96b7-8721-98d2-ba0864d076dc"},
		{"lambdaidem#YWJj", "grüße", "5c97edd2-05b8-8a70-a79b-26b5169a50b5"},
		{"", "", "587ebcec-c0fc-8394-abd1-d86ad545dac0"},
	} {
		if got := downstreamKey(c.id, c.name); got != c.want {
			t.Errorf("of %q and %q it is %s, want %s", c.id, c.name, got, c.want)
		}
	}
}

// A downstream key is a UUID of version 8. Two keys are equal only if both the ids and the names
// are equal, even if id and name together have the same text.
func TestE6_EveryPartCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("a0")), 0, 3, -1)
		type parts struct {
			id   string
			name string
		}
		draw := func(which string) parts {
			return parts{text.Draw(t, which+" id"), text.Draw(t, which+" name")}
		}
		p, q := draw("first"), draw("second")
		x, y := downstreamKey(p.id, p.name), downstreamKey(q.id, q.name)
		if (p == q) != (x == y) {
			t.Errorf("%v has %s, %v has %s", p, x, q, y)
		}
		if err := UUIDKey(x); err != nil || x[14] != '8' || x[19] != '8' && x[19] != '9' && x[19] != 'a' && x[19] != 'b' {
			t.Errorf("%s: %v", x, err)
		}
	})
}
