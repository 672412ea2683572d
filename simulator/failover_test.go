package simulator

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// orderly has a failover wait for everything that docs/operate.md waits for.
var orderly = waits{attempts: true, late: true, writes: true}

// In each of these runs, a request of the failed Region arrives there after its attempt has ended.
// If the other Region serves the keys by then, the request's write replaces a completed record: the
// last writer wins. A retry then pays again. Such runs are rare, so their seeds are listed.
func TestG1_FailoverWaitsForLateRequests(t *testing.T) {
	for _, c := range []struct {
		seed   uint64
		change func(uint64, *plan)
	}{
		{5200, failing(orderly)},
		{3951, lagging(orderly)},
		{4003, lagging(orderly)},
		{4411, lagging(orderly)}, // late because of an outage
	} {
		t.Run(fmt.Sprint("seed ", c.seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := RunRegions(c.seed, memdynamo.Eventual, c.change, nil, false)
				if len(r.Wrong) > 0 {
					t.Errorf("breaks %v\n%s", r.Wrong, r.Timeline)
				}
			})
		})
	}
}

// The simulated failover waits exactly as long as the runbook says before it waits for the failed
// Region's writes.
func TestG1_FailoverWaitsAsTheRunbookSays(t *testing.T) {
	text, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile("Wait for the function's timeout, plus `MaxSkew`, plus (\\d+) minutes").FindSubmatch(text)
	if said == nil {
		t.Fatal("docs/operate.md doesn't say how long to wait")
	}
	minutes, err := strconv.Atoi(string(said[1]))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		p := plan{timeout: time.Duration(seed+1) * time.Second, maxSkew: time.Duration(seed) * 300 * time.Millisecond, skew: 10 * time.Second}
		want := p.timeout + p.maxSkew + time.Duration(minutes)*time.Minute
		if f := newFailover(seed, &p, waits{attempts: true, late: true}); f.moved-f.at != want {
			t.Errorf("seed %d: keys move after %v; want %v", seed, f.moved-f.at, want)
		}
	}
}

// The same seed gives the same run although several clients continue when the keys have moved. In
// this run a process serves several of their requests, so their order matters.
func TestG1_FailoverSameSeedSameRun(t *testing.T) {
	var first string
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			got := RunRegions(40, memdynamo.Eventual, failing(orderly), nil, true).Timeline
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("two runs:\n%s\n%s", first, got)
			}
		})
	}
}

// A record is in doubt too if an outage made one of its requests late. In this run, such a request
// breaks a rule.
func TestG1_LateRequestsOfAnOutageAreInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := RunRegions(34778, memdynamo.Eventual, failing(waits{}), nil, false)
		if len(r.Wrong) == 0 {
			t.Error("nothing went wrong, so nothing was proved")
		}
		for _, v := range r.Wrong {
			if !slices.Contains(r.Doubts, v.Key) {
				t.Errorf("%q was not in doubt, as %q were, and breaks %q: %s\n%s", v.Key, r.Doubts, v.Check, v.What, r.Timeline)
			}
		}
	})
}
