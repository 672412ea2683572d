package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// repeated has the repetitions of one storm, in the order of the time that the first wave took.
type repeated []storm

func (r repeated) sort() {
	slices.SortFunc(r, func(a, b storm) int { return cmp.Compare(last(a.during), last(b.during)) })
}

// median returns the storm whose figures the tables show.
func (r repeated) median() *storm { return &r[len(r)/2] }

// row is one of the rows that each storm has in a table.
type row struct {
	when  string
	waves func(storm) []measured
}

var rows = []row{
	{"during", func(s storm) []measured { return s.during }},
	{"after", func(s storm) []measured { return s.after }},
}

// answersTable shows which answers the duplicates received, and which requests they sent to
// DynamoDB.
func answersTable(all []repeated) table.Table {
	runs := func(m measured) int { return m.Runs }
	t := table.Table{{"mode", "wave", "processes", "runs of the handler", "replays", "409", "PutItem per duplicate", "GetItem per duplicate", "most calls of a duplicate"}}
	for _, r := range all {
		s := r.median()
		for _, one := range rows {
			wave := one.waves(*s)
			replays, refusals := 0, 0
			for _, m := range wave {
				for _, a := range m.Answers {
					switch {
					case a.Replayed:
						replays += a.Times
					case a.Status == http.StatusConflict:
						refusals += a.Times
					}
				}
			}
			duplicates := float64(replays + refusals)
			perDuplicate := func(operation string) string {
				return fmt.Sprintf("%.2f", float64(sum(wave, func(m measured) int { return m.DuplicateCalls[operation] }))/duplicates)
			}
			most := fmt.Sprint(maximum(wave, func(m measured) int { return m.MostCalls }))
			if s.mode.waits && one.when == "during" {
				most += fmt.Sprintf("; %d for a wait of %v", maximum(wave, func(m measured) int { return m.MostSoon }), s.settings.HandlerTakes)
			}
			t = append(t, []string{
				s.mode.name, one.when, fmt.Sprint(s.processes), fmt.Sprint(sum(wave, runs)), fmt.Sprint(replays), fmt.Sprint(refusals),
				perDuplicate("PutItem"), perDuplicate("GetItem"), most,
			})
		}
	}
	return t
}

// costsTable shows how long the waves took, and how much memory and capacity they needed.
func costsTable(all []repeated) table.Table {
	t := table.Table{{"mode", "wave", "processes", "last response", "peak memory of a process", "connections of a process", "throttled writes", "throttled reads", "most reads in 1 ms", "in 10 ms"}}
	for _, r := range all {
		s := r.median()
		for _, one := range rows {
			wave := one.waves(*s)
			var took []time.Duration
			for _, each := range r {
				took = append(took, last(one.waves(each)))
			}
			writes, reads := sent(wave, "PutItem", "UpdateItem"), sent(wave, "GetItem")
			inOne, inTen := "", ""
			if s.mode.waits && one.when == "during" {
				inOne, inTen = share(reads, time.Millisecond), share(reads, 10*time.Millisecond)
			}
			t = append(t, []string{
				s.mode.name, one.when, fmt.Sprint(s.processes),
				fmt.Sprintf("%.1f s (%.1f–%.1f)", last(wave).Seconds(), slices.Min(took).Seconds(), slices.Max(took).Seconds()),
				memory(maximum(wave, func(m measured) int { return m.PeakMemory })),
				fmt.Sprint(maximum(wave, func(m measured) int { return m.MostOpen })),
				fmt.Sprint(throttled(writes, s.units.write, writeUnitsASecond)), fmt.Sprint(throttled(reads, s.units.read, readUnitsASecond)), inOne, inTen,
			})
		}
	}
	return t
}

func share(times []time.Duration, width time.Duration) string {
	largest, even := largestShare(times, width)
	return fmt.Sprintf("%.2f %% (even: %.2f %%)", 100*largest, 100*even)
}

func memory(bytes int) string {
	if bytes == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%d MB", bytes>>20)
}

func last(wave []measured) time.Duration {
	latest := time.Duration(0)
	for _, m := range wave {
		latest = max(latest, m.Last)
	}
	return latest
}

func maximum(wave []measured, of func(measured) int) int {
	most := 0
	for _, m := range wave {
		most = max(most, of(m))
	}
	return most
}

func sum(wave []measured, of func(measured) int) int {
	n := 0
	for _, m := range wave {
		n += of(m)
	}
	return n
}

// sent returns the times at which requests with the operations were sent, since the wave began.
func sent(wave []measured, operations ...string) []time.Duration {
	var times []time.Duration
	for _, m := range wave {
		for _, c := range m.Calls {
			if slices.Contains(operations, c.Operation) {
				times = append(times, c.At)
			}
		}
	}
	return times
}

// markdown returns the generated part of docs/performance.md. load is the result of loadAverage
// before the first storm.
func markdown(all []repeated, f flags, load string, now time.Time) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "`make bench-storm ARGS=-write` printed these tables on %s, on %d processor cores of a shared machine, which DynamoDB Local uses too%s. "+
		"Each wave has %d requests. Each storm ran %d times: the figures are those of the storm whose first wave took the median time, and the range of all storms is in parentheses.\n\n",
		now.Format("2 January 2006"), runtime.NumCPU(), load, f.settings.Requests, f.repeat)
	_ = answersTable(all).Markdown(&b) // a strings.Builder returns no errors
	_, _ = fmt.Fprintln(&b)
	_ = costsTable(all).Markdown(&b)
	return b.String()
}

// loadAverage returns a phrase with the machine's load average over 15 minutes (proc_loadavg(5)),
// or "" if the system does not report it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 2 {
		return " (load average before the run: " + fields[2] + ")"
	}
	return ""
}
