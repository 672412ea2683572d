//go:build !race

package lambdaidem_test

import (
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The guard's own cost is bounded: so many allocations at most for a request with a
// 1 KB JSON body. Allocations are counted and so the same on every machine, but for
// what the runtime's own differs by; the race detector adds its own.
func TestAllocationsAreBounded(t *testing.T) {
	most := map[string]float64{"new": 23, "replay": 19, "mismatch": 17}
	body, clock := jsonBody(1<<10), newTicker()
	for name, next := range benchCases(body, clock) {
		t.Run(name, func(t *testing.T) {
			h := benchGuard(clock)
			benchSend(t, h, post("key-1", body), 201)
			i := 0
			if n := testing.AllocsPerRun(200, func() {
				benchSend(t, h, next(i), benchStatus[name])
				i++
			}); n > most[name] {
				t.Errorf("it takes %.0f allocations; at most %.0f are allowed", n, most[name])
			} else {
				t.Logf("it takes %.0f allocations", n)
			}
		})
	}
}

// R4: a replay from memory allocates less than one from the store in memory, and
// than reading the event, the fingerprint, the id and decoding the answer take: it
// is decoded once.
func TestR4_AllocationsAreBounded(t *testing.T) {
	body := jsonBody(1 << 10)
	in := post("key-1", body)
	count := func(optFns ...func(*lambdaidem.Options)) float64 {
		h := benchHandler(newTicker(), body, optFns...)
		benchSend(t, h, in, 201)
		return testing.AllocsPerRun(200, func() { benchSend(t, h, in, 201) })
	}
	needed, events := lambdaidem.BareReplay(in, 201, body)
	bare := testing.AllocsPerRun(200, func() { needed(); events() })
	stored, cached := count(), count(roomy)
	t.Logf("%.0f allocations from the store, %.0f from memory, %.0f for the parts that none from the store can do without", stored, cached, bare)
	if cached >= stored || cached > bare {
		t.Errorf("a replay from memory takes %.0f allocations, one from the store %.0f, its parts alone %.0f", cached, stored, bare)
	}
}
