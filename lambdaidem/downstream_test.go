package lambdaidem

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// E6: what has been sent once must be sent again by every later version.
func TestE6_GoldenDownstreamKeys(t *testing.T) {
	for _, c := range []struct{ id, fingerprint, name, want string }{
		{"lambdaidem#YWJj", "f1", "charge", "d1c3aa2a-fcb0-8129-bbe5-0975d3b0b089"},
		{"lambdaidem#YWJj", "f1", "", "a6c3565a-5bbf-87b8-8b29-0f7383228979"},
		{"lambdaidem#YWJj", "f1", "grüße", "d8a877a3-4f4d-8ace-bd16-b03d664cf69b"},
		{"", "", "", "5ba89c59-e2af-8db0-a5f1-4bc07a8255a0"},
	} {
		if got := downstreamKey(c.id, c.fingerprint, c.name); got != c.want {
			t.Errorf("of %q, %q and %q it is %s, want %s", c.id, c.fingerprint, c.name, got, c.want)
		}
	}
}

// E6: a UUID of version 8, and another one for every other part; no choice of
// parts runs together.
func TestE6_EveryPartCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 3, -1)
		parts := func(which string) [3]string {
			return [3]string{text.Draw(t, which+" id"), text.Draw(t, which+" fingerprint"), text.Draw(t, which+" name")}
		}
		p, q := parts("first"), parts("second")
		x, y := downstreamKey(p[0], p[1], p[2]), downstreamKey(q[0], q[1], q[2])
		if (p == q) != (x == y) {
			t.Errorf("%q has %s, %q has %s", p, x, q, y)
		}
		if err := UUIDKey(x); err != nil || x[14] != '8' || x[19] != '8' && x[19] != '9' && x[19] != 'a' && x[19] != 'b' {
			t.Errorf("%s: %v", x, err)
		}
	})
}

// L6, E6: a takeover keeps the stored fingerprint, and the keys are made of that,
// though the guard's own of the same request may be another one. A released record
// without steps forgets it (F5).
func TestL6_ATakeoverKeepsTheStoredFingerprint(t *testing.T) {
	now := time.Now()
	g := &Guard{opts: Options{}.settle()}
	a := g.newAttempt(t.Context(), call{who: Identity{Operation: "pay", Key: "k"}, fingerprint: "own"})
	for name, c := range map[string]struct {
		over Record
		want string
	}{
		"first":                {Record{}, "own"},
		"in progress":          {Record{State: InProgress, Fingerprint: "stored"}, "stored"},
		"released":             {Record{State: Released, Fingerprint: "stored"}, "own"},
		"released, with steps": {Record{State: Released, Fingerprint: "stored", Steps: Steps{"charge": []byte("1")}}, "stored"},
	} {
		if got := a.claimAt(now, c.over).Fingerprint; got != c.want {
			t.Errorf("%s: the claim has %q, want %q", name, got, c.want)
		}
	}
	ctx := context.WithValue(t.Context(), attemptKey{}, a)
	own := DownstreamKey(ctx, "charge")
	a.acquired(ctx, Record{}, Record{State: InProgress, Fingerprint: "stored", Attempt: 2})
	if got := DownstreamKey(ctx, "charge"); got == own || got != downstreamKey(a.id, "stored", "charge") {
		t.Errorf("under the stored fingerprint the key is %s", got)
	}
}
