//go:build !race

// This file is left out under the race detector, which sees the same code in TestSimulate.

package simulator

import (
	"flag"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// smallCases are the cases that are tried in every order of their requests: two attempts with each
// single fault at each request, and three attempts without faults.
var smallCases = []Small{
	{Name: "two attempts", Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts, the first fails", Attempts: []Ending{ServerError, Created}, Faults: 1},
	{Name: "two attempts over a dead lease", Before: Killed, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts over a released record", Before: ServerError, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts over an answer", Before: Created, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts under hold", Hold: true, Attempts: []Ending{ServerError, Created}, Faults: 1},
	{Name: "two attempts of two policies over a dead lease under hold", Policies: []lambdaidem.Policy{lambdaidem.Hold, lambdaidem.Rerun, lambdaidem.Hold}, Before: Killed, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts of two policies over a dead lease under rerun", Policies: []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Rerun, lambdaidem.Hold}, Before: Killed, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts of two payloads", Attempts: []Ending{ServerError, Created}, Payloads: []string{"p", "q"}, Faults: 1},
	{Name: "two attempts that wait", Wait: time.Second, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "three attempts", Attempts: []Ending{Created, Created, Created}},
	{Name: "three attempts, two fail", Attempts: []Ending{ServerError, Panicked, Created}},
	{Name: "three attempts over a dead lease", Before: Killed, Attempts: []Ending{Created, ServerError, Created}},
	{Name: "three attempts under hold", Hold: true, Attempts: []Ending{Created, Uncertain, Created}},

	// With transactions.
	{Name: "two attempts with a transaction each", Enlist: true, Verdict: RefusedReject, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts with a transaction each over a dead lease", Enlist: true, Verdict: RefusedReject, Before: Killed, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "two attempts with a transaction each, paid from a poor account", Enlist: true, Cents: 5, Verdict: RefusedReject, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two attempts with a transaction each, one of which can be paid", Enlist: true, Cents: 15, Verdict: RefusedSilent, Attempts: []Ending{Created, Created}, Faults: 1},
	{Name: "two optimistic attempts", Enlist: true, Verdict: RefusedReject, Hasty: []bool{true, true, true}, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "two optimistic attempts, paid from a poor account", Enlist: true, Cents: 5, Verdict: RefusedSilent, Hasty: []bool{true, true, true}, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "two optimistic attempts, one fails", Enlist: true, Verdict: RefusedReject, Hasty: []bool{true, true, true}, Attempts: []Ending{Panicked, Created}, Faults: 1, Only: decisive},
	{Name: "two optimistic attempts over a dead lease", Enlist: true, Verdict: RefusedReject, Before: Killed, Hasty: []bool{false, true, true}, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "lock against optimistic", Enlist: true, Verdict: RefusedReject, Hasty: []bool{false, false, true}, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "lock against optimistic over a dead lease", Enlist: true, Verdict: RefusedReject, Before: Killed, Hasty: []bool{false, false, true}, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "lock against optimistic over a held lease", Enlist: true, Verdict: RefusedReject, Policies: []lambdaidem.Policy{lambdaidem.Hold, lambdaidem.Rerun, lambdaidem.Rerun}, Before: Killed, Hasty: []bool{false, false, true}, Attempts: []Ending{Created, Created}, Faults: 1, Only: decisive},
	{Name: "three optimistic attempts", Enlist: true, Verdict: RefusedReject, Hasty: []bool{true, true, true, true}, Attempts: []Ending{Created, Created, Created}},
	{Name: "lock against two optimistic attempts", Enlist: true, Verdict: RefusedReject, Hasty: []bool{false, false, true, true}, Attempts: []Ending{Created, Created, Created}},
}

// decisive are the faults after which an attempt without a lock must decide differently than
// without faults: its transaction was applied but the reply was lost, or it is applied late.
var decisive = []Fault{ReplyLost, RequestLate}

// moreDecisive replaces decisive with the flag -every-fault. Each case then takes minutes.
var moreDecisive = []Fault{ReplyLost, RequestLate, KillAfter, Stall, Unfinished}

var everyFault = flag.Bool("every-fault", false, "try all faults that are decisive without a lock: minutes for each case")

// TestExhaustive_G3 runs each small case in every order, and checks each run.
func TestExhaustive_G3(t *testing.T) {
	for _, c := range smallCases {
		if *everyFault && len(c.Only) > 0 {
			c.Only = moreDecisive
		}
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

// One of two mirrored orders can be left out, because both lead to the same runs, except for the
// names of the processes.
func TestExhaustive_MirroredRunsAreTheSame(t *testing.T) {
	names := regexp.MustCompile(`^ *[0-9.]+ ms|process \d+`)
	for _, c := range []Small{
		{Name: "three attempts", Attempts: []Ending{Created, Created, Created}},
		{Name: "two attempts over an answer", Before: Created, Attempts: []Ending{Created, Created}, Faults: 1},
		{Name: "two optimistic attempts", Enlist: true, Verdict: RefusedReject, Hasty: []bool{true, true, true}, Attempts: []Ending{Created, Created}},
	} {
		walk := func(mirrored bool) (runs map[string]bool, paths int) {
			c.Mirrored, runs = mirrored, map[string]bool{}
			for script, more := []int(nil), true; more; paths++ {
				var r Report
				path := script
				synctest.Test(t, func(*testing.T) { r, script, more = Play(c, path, true) })
				var lines []string
				for line := range strings.Lines(r.Timeline) {
					lines = append(lines, names.ReplaceAllString(line, ""))
				}
				slices.Sort(lines)
				runs[strings.Join(lines, "")] = true
			}
			return runs, paths
		}
		all, both := walk(true)
		some, one := walk(false)
		if !maps.Equal(all, some) || one >= both {
			t.Errorf("%s: %d schedules show %d runs, with mirrored ones %d show %d", c.Name, one, len(some), both, len(all))
		}
		t.Logf("%s: %d schedules show the %d runs of %d", c.Name, one, len(some), both)
	}
}

// Walking the tree visits every order only if the same path always leads to the same run, and to
// the same next path.
func TestExhaustive_SamePathSameRun(t *testing.T) {
	c := Small{Attempts: []Ending{Created, Created}, Faults: 1}
	for script, more, n := []int(nil), true, 0; more && n < 500; n++ {
		var once, again Report
		var next, same []int
		path := script
		synctest.Test(t, func(*testing.T) { once, next, more = Play(c, path, true) })
		synctest.Test(t, func(*testing.T) { again, same, _ = Play(c, path, true) })
		if once.Timeline != again.Timeline || !slices.Equal(next, same) {
			t.Fatalf("path %v leads once to\n%s\nthen %v, and again to\n%s\nthen %v", path, once.Timeline, next, again.Timeline, same)
		}
		script = next
	}
}
