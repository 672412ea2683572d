//go:build !race

package lambdaidem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// For a request with a 1 KB JSON body, the guard makes at most these numbers of allocations.
// Allocations are counted because their number is the same on every machine, apart from a few of
// the runtime. The race detector adds allocations.
func TestAllocationsAreBounded(t *testing.T) {
	most := map[string]float64{"new": 33, "replay": 22, "mismatch": 23}
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

// The answer to a request that is in progress is encoded once and used for all requests. So it
// needs fewer allocations than the guard's other answers.
func TestL8_AConflictAllocatesLittle(t *testing.T) {
	h := lambdaidem.New(memstore.New(), quiet).APIGatewayV2(func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Uncertain(errors.New("still at it"))
	})
	count := func(in request, want int) float64 {
		return testing.AllocsPerRun(200, func() { benchSend(t, h, in, want) })
	}
	body := jsonBody(1 << 10)
	if _, err := h(t.Context(), post("key-1", body)); err == nil {
		t.Fatal("the first request got an answer")
	}
	busy, mismatch := count(post("key-1", body), 409), count(post("key-1", "{}"), 422)
	t.Logf("%.0f allocations for a conflict, %.0f for a mismatch", busy, mismatch)
	if busy >= mismatch {
		t.Errorf("a conflict takes %.0f allocations, a mismatch %.0f", busy, mismatch)
	}
}

// A replay from the cache makes fewer allocations than a replay from the in-memory store. It also
// makes fewer than reading the event, the fingerprint, the id and decoding the answer together,
// because the cache decodes an answer only once.
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
