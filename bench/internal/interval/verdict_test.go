package interval

import "testing"

func TestVerdictIsOpenWhereTheIntervalHoldsTheBound(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		want Verdict
	}{
		{Estimate{0.97, 0.95, 0.99}, Met},
		{Estimate{1, 1, 1}, Met},
		{Estimate{0.99, 0.97, 1.01}, Open},
		{Estimate{1.01, 1, 1.02}, Open},
		{Estimate{1.03, 1.01, 1.05}, Missed},
	} {
		if got := c.e.AtMost(1); got != c.want {
			t.Errorf("%v at most 1: %q; want %q", c.e, got, c.want)
		}
		mirrored := Estimate{2 - c.e.Value, 2 - c.e.High, 2 - c.e.Low}
		if got := mirrored.AtLeast(1); got != c.want {
			t.Errorf("%v at least 1: %q; want %q", mirrored, got, c.want)
		}
	}
}
