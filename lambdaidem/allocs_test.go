//go:build !race

package lambdaidem_test

import "testing"

// The guard's own cost is bounded: at most 60 allocations for a request with a
// 1 KB JSON body, whatever becomes of it. Allocations are counted and so the
// same on every machine; the race detector adds its own.
func TestAllocationsAreBounded(t *testing.T) {
	body, clock := jsonBody(1<<10), newTicker()
	for name, next := range benchCases(body, clock) {
		t.Run(name, func(t *testing.T) {
			h := benchGuard(clock)
			benchSend(t, h, post("key-1", body), 201)
			i := 0
			if n := testing.AllocsPerRun(200, func() {
				benchSend(t, h, next(i), benchStatus[name])
				i++
			}); n > 60 {
				t.Errorf("it takes %.0f allocations", n)
			} else {
				t.Logf("it takes %.0f allocations", n)
			}
		})
	}
}
