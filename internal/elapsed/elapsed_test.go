package elapsed_test

import (
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
	"github.com/lambdaidem/toolkit/internal/elapsed/elapsedtest"
)

func TestR4_TheLongerOfTwoClocks(t *testing.T) {
	const short, long = time.Second, time.Hour
	for name, c := range map[string]struct {
		wall, monotonic, want time.Duration
		known                 bool
	}{
		"both clocks ran":             {short, short, short, true},
		"no time has passed":          {0, 0, 0, true},
		"frozen":                      {long, short, long, true},
		"the wall clock was set back": {short, long, long, true},
		"the wall clock was set back to before from": {-1, long, long, false},
	} {
		from := time.Now()
		if d, known := elapsed.Between(from, elapsedtest.Move(from, c.wall, c.monotonic)); d != c.want || known != c.known {
			t.Errorf("%s: %v, %v; want %v, %v", name, d, known, c.want, c.known)
		}
	}
	if d, known := elapsed.Since(elapsedtest.Move(time.Now(), -long, 0)); d < long || d > 2*long || !known {
		t.Errorf("an hour ago by the wall clock: %v, %v", d, known)
	}
	if d, known := elapsed.Since(elapsedtest.Move(time.Now(), long, -short)); d < short || d > long || known {
		t.Errorf("in an hour by the wall clock, a second ago by the monotonic one: %v, %v", d, known)
	}
}
