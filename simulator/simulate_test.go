package simulator

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var (
	seeds = flag.Int("seeds", 0, "how many seeds TestSimulate tries; 0: 10,000, or 150 under the race detector")
	first = flag.Uint64("seed", 0, "the first seed")
	html  = flag.String("html", "", "the folder for the diagram of each failing seed, as an HTML file; empty: none is written")
	draw  = flag.Bool("draw", false, "TestSimulate_G3 writes the diagram of every seed, failing or not")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runSeed runs the world of one seed in a synctest bubble.
func runSeed(t *testing.T, seed uint64, mut *Mutation, timeline bool) (r Report) {
	synctest.Test(t, func(*testing.T) { r = Run(seed, mut, timeline) })
	return r
}

// TestSimulate_G3 runs each seed, and tests every rule in Checks.
func TestSimulate_G3(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 10_000
		if raceEnabled {
			n = 150
		}
	}
	var (
		next   atomic.Int64
		mu     sync.Mutex
		total  = &tally{faults: map[Fault]int{}, events: map[lambdaidem.Kind]int{}, endings: map[Ending]int{}, paths: map[Path]int{}}
		failed []Report
		wg     sync.WaitGroup
		began  = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				mu.Lock()
				stop := len(failed) >= 3
				mu.Unlock()
				if i >= int64(n) || stop {
					return
				}
				r := runSeed(t, *first+uint64(i), nil, *draw)
				if r.Timeline != "" {
					writeDiagram(t, "seed", r)
				}
				mu.Lock()
				total.add(r)
				if len(r.Wrong) > 0 {
					failed = append(failed, r)
				}
				if *seeds > 20_000 && total.seeds%10_000 == 0 {
					t.Logf("%d seeds, %v", total.seeds, time.Since(began).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, r := range failed {
		t.Errorf("seed %d breaks %v; again: go test ./simulator -run TestSimulate -seed %d -seeds 1\n%s", r.Seed, r.Wrong, r.Seed, r.Timeline)
	}
	t.Logf("%v in %v", total, time.Since(began).Round(time.Second))
	enough := total.seeds >= 10_000 // with fewer seeds, something rare may be missing by chance
	for _, f := range allFaults {
		if enough && total.faults[f] == 0 {
			t.Errorf("no run had the fault %q, so nothing was proved of it", f)
		}
	}
	for _, e := range endings {
		if enough && total.endings[e.ending] == 0 && e.ending != Running {
			t.Errorf("no handler ended by %q, so nothing was proved of it", e.ending)
		}
	}
	for _, p := range allPaths {
		if enough && total.paths[p] == 0 {
			t.Errorf("no transaction went the path %q, so nothing was proved of it", p)
		}
	}
	for _, k := range []lambdaidem.Kind{lambdaidem.EventTakenOver, lambdaidem.EventLeaseLost, lambdaidem.EventReplayed, lambdaidem.EventUncertain, lambdaidem.EventAbandoned, lambdaidem.EventMismatch} {
		if enough && total.events[k] == 0 {
			t.Errorf("no run had the outcome %q, so nothing was proved of it", k)
		}
	}
}

// longerThanTTL changes a plan with optimistic handlers: invocations last as long as on Lambda
// Managed Instances, and most handlers run for longer than the TTL. Some ignore their context. There
// are no deployments and no operators, because their times and checks are made for invocations of a
// few seconds.
func longerThanTTL(p *plan) {
	if p.effects.optimistic == 0 {
		return
	}
	p.timeout, p.ttl, p.slow, p.disobedient, p.pace = 90*time.Minute, lambdaidem.MinTTL, 0.8, 0.3, 600
	p.deployments, p.operators = deployments{}, operators{}
}

// A record that expired while a handler without a lease was running still refuses its transaction.
func TestSimulate_E4_HandlersRunLongerThanTheTTL(t *testing.T) {
	s := overSeeds(t, seedCount(300), func(seed uint64) Report { return Run(seed, &Mutation{Plan: longerThanTTL}, false) })
	s.mustHold(t)
	t.Log(&s.tally)
}

// tally adds reports up.
type tally struct {
	seeds, requests, runs, transactions int
	faults                              map[Fault]int
	events                              map[lambdaidem.Kind]int
	endings                             map[Ending]int
	paths                               map[Path]int
}

func (s *tally) add(r Report) {
	s.seeds, s.requests, s.runs = s.seeds+1, s.requests+r.Requests, s.runs+r.Runs
	s.transactions += r.Transactions
	for p, n := range r.Paths {
		s.paths[p] += n
	}
	for f, n := range r.Faults {
		s.faults[f] += n
	}
	for k, n := range r.Events {
		s.events[k] += n
	}
	for e, n := range r.Endings {
		s.endings[e] += n
	}
}

func (s *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d requests, %d runs of the handler, %d transactions\n", s.seeds, s.requests, s.runs, s.transactions)
	count := func(title string, lines []string) {
		slices.Sort(lines)
		fmt.Fprintf(&b, "  %s: %s\n", title, strings.Join(lines, ", "))
	}
	var lines []string
	for f, n := range s.faults {
		lines = append(lines, fmt.Sprintf("%s %d", f, n))
	}
	count("faults", lines)
	lines = nil
	for k, n := range s.events {
		lines = append(lines, fmt.Sprintf("%s %d", k, n))
	}
	count("outcomes", lines)
	lines = nil
	for e, n := range s.endings {
		lines = append(lines, fmt.Sprintf("%s %d", e, n))
	}
	count("endings", lines)
	lines = nil
	for p, n := range s.paths {
		lines = append(lines, fmt.Sprintf("%s %d", p, n))
	}
	count("paths of transactions", lines)
	return b.String()
}

// The same seed gives the same run.
func TestSimulate_SameSeedSameRun(t *testing.T) {
	for seed := range uint64(50) {
		a, b := runSeed(t, seed, nil, true), runSeed(t, seed, nil, true)
		if a.Timeline != b.Timeline {
			x, y := strings.Split(a.Timeline, "\n"), strings.Split(b.Timeline, "\n")
			for i := range min(len(x), len(y)) {
				if x[i] != y[i] {
					t.Fatalf("seed %d: line %d is once\n%s\nand once\n%s", seed, i, x[i], y[i])
				}
			}
			t.Fatalf("seed %d: two runs of %d and %d lines", seed, len(x), len(y))
		}
	}
}
