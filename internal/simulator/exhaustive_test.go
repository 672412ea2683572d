//go:build !race

// The race detector has the same code to look at in TestSimulate; every order is
// walked without it.

package simulator

import (
	"testing"
	"testing/synctest"
	"time"
)

// smallCases are tried in every order of their requests: two attempts with each
// single fault at each place, three without faults (G3, L2 to L8, X1 to X9).
var smallCases = []Small{
	{Name: "two attempts", Attempts: []string{"201", "201"}, Faults: 1},
	{Name: "two attempts, the first fails", Attempts: []string{"500", "201"}, Faults: 1},
	{Name: "two attempts over a dead lease", Before: "killed", Attempts: []string{"201", "201"}, Faults: 1},
	{Name: "two attempts over a released record", Before: "500", Attempts: []string{"201", "201"}, Faults: 1},
	{Name: "two attempts over an answer", Before: "201", Attempts: []string{"201", "201"}, Faults: 1},
	{Name: "two attempts under hold", Hold: true, Attempts: []string{"500", "201"}, Faults: 1},
	{Name: "two attempts of two payloads", Attempts: []string{"500", "201"}, Payloads: []string{"p", "q"}, Faults: 1},
	{Name: "two attempts that wait", Wait: time.Second, Attempts: []string{"201", "201"}, Faults: 1},
	{Name: "three attempts", Attempts: []string{"201", "201", "201"}},
	{Name: "three attempts, two fail", Attempts: []string{"500", "panic", "201"}},
	{Name: "three attempts over a dead lease", Before: "killed", Attempts: []string{"201", "500", "201"}},
	{Name: "three attempts under hold", Hold: true, Attempts: []string{"201", "uncertain", "201"}},
}

// TestExhaustive_G3 walks the whole tree of each small case.
func TestExhaustive_G3(t *testing.T) {
	for _, c := range smallCases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			began, paths, failed := time.Now(), 0, 0
			for script, more := []int(nil), true; more; paths++ {
				var r Report
				path := script
				synctest.Test(t, func(*testing.T) { r, script, more = Play(c, path, false) })
				if len(r.Wrong) > 0 {
					t.Errorf("path %v breaks %v\n%s", path, r.Wrong, r.Timeline)
					if failed++; failed == 3 {
						t.FailNow()
					}
				}
			}
			t.Logf("%d schedules in %v", paths, time.Since(began).Round(time.Millisecond))
		})
	}
}
