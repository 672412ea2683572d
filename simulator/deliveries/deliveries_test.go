package deliveries

import (
	"flag"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var (
	seeds = flag.Int("seeds", 1000, "how many seeds TestDeliveries tries; a tenth under the race detector")
	first = flag.Uint64("seed", 0, "the first seed")
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // each process warns of Policy Hold with keys made of message IDs
	goleak.VerifyTestMain(m)
}

// runSeed runs one seed in a synctest bubble.
func runSeed(t *testing.T, seed uint64, mut *Mutation) (r Report) {
	synctest.Test(t, func(*testing.T) { r = Run(seed, mut) })
	return r
}

// TestDeliveries_V2 checks the run of each seed: each message has its effect once, failures are
// reported, and the order of each group is kept.
func TestDeliveries_V2(t *testing.T) {
	n := *seeds
	if raceEnabled {
		n = max(n/10, 1)
	}
	var (
		next     atomic.Int64
		mu       sync.Mutex
		total    = Report{Faults: map[string]int{}}
		failures int
		workers  sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed := *first + uint64(next.Add(1)-1)
				if seed >= *first+uint64(n) {
					return
				}
				r := runSeed(t, seed, nil)
				mu.Lock()
				total.Deliveries, total.Runs, total.Effects, total.GivenUp, total.Kills = total.Deliveries+r.Deliveries, total.Runs+r.Runs, total.Effects+r.Effects, total.GivenUp+r.GivenUp, total.Kills+r.Kills
				for f, n := range r.Faults {
					total.Faults[f] += n
				}
				if len(r.Wrong) > 0 && failures < 5 {
					failures++
					t.Errorf("seed %d: %v\n%s\nagain: go test ./simulator/deliveries -run TestDeliveries -seed %d -seeds 1", seed, r.Wrong, r.Plan, seed)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d seeds: %d deliveries, %d runs of the handler, %d effects, %d messages given up, %d processes killed, faults %v", n, total.Deliveries, total.Runs, total.Effects, total.GivenUp, total.Kills, total.Faults)
	if len(total.Faults) < len(fates) || total.Kills == 0 || total.GivenUp == 0 {
		t.Error("not everything that can go wrong did, so nothing was proved of it")
	}
}

// TestDeliveries_Mutations tests the checks: they must find each known mistake.
func TestDeliveries_Mutations(t *testing.T) {
	const limit = 1000
	for _, mistake := range []struct {
		Mutation
		from uint64 // the seed at which the search begins; it tries all others below limit next
	}{
		{Mutation{Name: "no guard", Unguarded: true}, 0},
		{Mutation{Name: "order forgotten", Unordered: true}, 0},
		{Mutation{Name: "a failure not reported", Silent: true}, 0},
		{Mutation{Name: "a key for each delivery", Fresh: true}, 0},
		{Mutation{Name: "the order of a partition forgotten", Source: Kafka, Unordered: true}, 0},
		{Mutation{Name: "a Kafka record with a key for each delivery", Source: Kafka, Fresh: true}, 0},
		{Mutation{Name: "a mapping that ignores failures", Source: Kafka, Deaf: true}, 0},
		{Mutation{Name: "records that end before messages do", Guard: func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL }}, 373},
	} {
		t.Run(mistake.Name, func(t *testing.T) {
			for tried := range uint64(limit) {
				seed := (mistake.from + tried) % limit
				if r := runSeed(t, seed, &mistake.Mutation); len(r.Wrong) > 0 {
					t.Logf("seed %d: %s", seed, r.Wrong[0])
					return
				}
			}
			t.Error("no seed finds it")
		})
	}
}
