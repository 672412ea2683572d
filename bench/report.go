package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/quota"
	"github.com/lambdaidem/toolkit/bench/internal/table"
)

type results struct {
	processors  int   // number of processors that the client kept to; 0 for all
	shared      error // why the client did not keep to them
	comparisons []comparison
	small       []small
	noQuota     error // why small is empty, if it was to be measured
	large       *largeResults
	guard       *guardResults
	cached      *cachedReplay
	messages    *throughput
	engine      *engine
}

// print writes plain text for a terminal.
func (r *results) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\n%s, %s/%s, GOMAXPROCS %d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	if r.comparisons != nil {
		_, _ = fmt.Fprintf(w, `
THE TOOLKIT AGAINST THE BARE SDK

  toolkit   the whole guard: an HTTP API event with %d bytes of JSON goes in, the response comes out;
            over dynamostore and the SDK, all with default options
  bare SDK  the floor: PutItem, UpdateItem and TransactWriteItems as dynamostore sends them, byte for byte but for ids, tokens
            and times, by the SDK with default options; no key, fingerprint, answer or failure is handled
  Both use one DynamoDB Local and the same HTTP transport settings.
  %s
  Blocks of both sides took turns in random order. Ratios are toolkit / bare SDK; in parentheses the interval of 95 of
  100 resamplings of the blocks. An aim is met if the whole interval keeps it, and missed if none of it does.

`, bodySize, r.where())
		for _, s := range scenarios {
			_, _ = fmt.Fprintf(w, "  %-21s  %s\n", s.name, s.what)
		}
		_, _ = fmt.Fprintln(w)
		_ = r.ratios().Text(w)
		_, _ = fmt.Fprint(w, "\nEach operation. Times are for orientation: they are of this machine and this moment.\n\n")
		_ = r.operations().Text(w)
	}
	if r.noQuota != nil {
		_, _ = fmt.Fprintf(w, "\nSMALL FUNCTIONS\n\n  Not measured: %v.\n", r.noQuota)
	}
	if r.small != nil {
		_, _ = fmt.Fprintf(w, "\nSMALL FUNCTIONS\n\n  This process with the share of a core that Lambda gives functions of that size, %d µs at a time; one request\n  at a time. The database is not slowed down.\n\n", quota.Period)
		_ = smallTable(r.small).Text(w)
	}
	if r.large != nil {
		_, _ = fmt.Fprint(w, "\nA LARGE ANSWER\n\n  Stored in parts and replayed through the whole guard, over dynamostore with default options.\n\n")
		_ = r.large.table().Text(w)
	}
	if r.guard != nil {
		_, _ = fmt.Fprint(w, "\nTHE GUARD ALONE\n\n  New requests to the guard over a store in memory: no network, no SDK.\n\n")
		_ = r.guard.call1KB().Text(w)
		_, _ = fmt.Fprintf(w, "\nHow the time grows when the input grows by a factor of %d. Up to %d counts as linear, for what no longer fits\na cache costs more; a quadratic step would take %d.\n\n",
			growthFactor, aimFactor, growthFactor*growthFactor)
		_ = r.guard.growthTable().Text(w)
	}
	if r.cached != nil {
		_, _ = fmt.Fprint(w, "\nA REPLAY FROM THE CACHE\n\n  By lambdaidem's BenchmarkCachedReplay; that it makes no round trip is counted above.\n\n")
		_ = r.cached.table().Text(w)
	}
	if r.messages != nil {
		_, _ = fmt.Fprint(w, "\nMESSAGES\n\n  The decorator of SQS over dynamostore, against a loop that sends the same writes by the bare SDK. Batches of\n  both took turns.\n\n")
		_ = r.messages.table().Text(w)
	}
	if r.engine != nil {
		_, _ = fmt.Fprint(w, "\n")
		_ = r.engine.table().Text(w)
	}
}

// where returns a sentence about the processors that the client and the database used.
func (r *results) where() string {
	switch {
	case r.shared != nil:
		return fmt.Sprintf("They share the processors with it: %v.", r.shared)
	case r.processors == 0:
		return "They share the processors with it."
	}
	return fmt.Sprintf("They keep to %d of the processors, the others are left to it.", r.processors)
}

// printMarkdown writes the tables of docs/performance.md.
func (r *results) printMarkdown(w io.Writer) {
	for _, t := range r.tables() {
		_ = t.Markdown(w)
		_, _ = fmt.Fprintln(w)
	}
}

func (r *results) tables() []table.Table {
	var all []table.Table
	if r.comparisons != nil {
		all = append(all, r.ratios(), r.operations())
	}
	if r.small != nil {
		all = append(all, smallTable(r.small))
	}
	if r.large != nil {
		all = append(all, r.large.table())
	}
	if r.guard != nil {
		all = append(all, r.guard.call1KB(), r.guard.growthTable())
	}
	if r.cached != nil {
		all = append(all, r.cached.table())
	}
	if r.messages != nil {
		all = append(all, r.messages.table())
	}
	if r.engine != nil {
		all = append(all, r.engine.table())
	}
	return all
}

func (r *results) ratios() table.Table {
	t := table.Table{{"scenario", "at once", "samples", "median", "aim", "99th percentile", "aim", "CPU", "aim", "allocations", "aim"}}
	for _, c := range r.comparisons {
		floor, ours, aim := c.cost[floorSide], c.cost[oursSide], c.aimed()
		cpu, heldCPU := "not measured", ""
		if ours.cpuMeasured {
			cpu, heldCPU = scalar(float64(ours.cpu)/float64(floor.cpu), aim.cpu)
		}
		allocations, heldAllocations := scalar(float64(ours.allocations)/float64(floor.allocations), aim.allocations)
		t = append(t, []string{
			c.scenario.name, fmt.Sprint(c.plan.atOnce), fmt.Sprintf("2 × %d", len(c.took[oursSide])),
			c.median.String(), held(c.median, aim.median), c.p99.String(), held(c.p99, aim.p99),
			cpu, heldCPU, allocations, heldAllocations,
		})
	}
	return t
}

// scalar returns a ratio as text, and the verdict on its aim. Such a ratio is one of sums, so it
// has no interval.
func scalar(ratio, aim float64) (value, verdict string) {
	return fmt.Sprintf("%.2f", ratio), held(interval.Exactly(ratio), aim)
}

// held returns the verdict on an aim, or "" if there is none.
func held(e interval.Estimate, aim float64) string {
	if aim == 0 {
		return ""
	}
	return fmt.Sprintf("≤ %.2f: %s", aim, e.AtMost(aim))
}

func (r *results) operations() table.Table {
	t := table.Table{{"scenario", "at once", "side", "median", "99th percentile", "CPU", "allocations", "allocated", "sent", "received", "round trips"}}
	for _, c := range r.comparisons {
		for side := range sides {
			spent := c.cost[side]
			cpu := "not measured"
			if spent.cpuMeasured {
				cpu = micros(spent.each(float64(spent.cpu)))
			}
			t = append(t, []string{
				c.scenario.name, fmt.Sprint(c.plan.atOnce), c.scenario.side(side),
				micros(float64(c.took[side].quantile(0.5, nil))), micros(float64(c.took[side].quantile(0.99, nil))), cpu,
				fmt.Sprintf("%.0f", spent.each(float64(spent.allocations))),
				fmt.Sprintf("%.1f KB", spent.each(float64(spent.bytes))/1024),
				fmt.Sprintf("%.0f B", spent.each(float64(spent.sent))),
				fmt.Sprintf("%.0f B", spent.each(float64(spent.received))),
				fmt.Sprintf("%.2f", spent.each(float64(spent.trips))),
			})
		}
	}
	return t
}

func (g *guardResults) call1KB() table.Table {
	allocations := g.cost.each(float64(g.cost.allocations))
	verdictOn := interval.Exactly(allocations) // the count hardly varies
	cpu := "not measured"
	if g.cost.cpuMeasured {
		cpu = micros(g.cost.each(float64(g.cost.cpu)))
	}
	return table.Table{
		{"a body of 1 KB", "measured", "aim", ""},
		{"time", fmt.Sprintf("%.1f µs (%.1f–%.1f)", g.call.Value/1000, g.call.Low/1000, g.call.High/1000),
			fmt.Sprintf("≤ %.0f µs", aimCall.Seconds()*1e6), string(g.call.AtMost(float64(aimCall)))},
		{"processor time", cpu, "", ""},
		{"allocations", fmt.Sprintf("%.1f", allocations), fmt.Sprintf("≤ %d", aimAllocations), string(verdictOn.AtMost(aimAllocations))},
	}
}

func (g *guardResults) growthTable() table.Table {
	t := table.Table{{"input", "from", "to", "a call at that", "ns for each", "the time grows", fmt.Sprintf("aim ≤ %d", aimFactor)}}
	for _, all := range [][]growth{g.growth, g.hostile} {
		for _, x := range all {
			t = append(t, []string{
				x.input.name, amount(x.small, x.input.unit), amount(x.large, x.input.unit), micros(x.nanoseconds),
				fmt.Sprintf("%.2f", x.perUnit()),
				fmt.Sprintf("%.1f (%.1f–%.1f)", x.factor.Value, x.factor.Low, x.factor.High),
				string(x.factor.AtMost(aimFactor)),
			})
		}
	}
	return t
}

func micros(nanoseconds float64) string {
	if nanoseconds < 1e5 {
		return fmt.Sprintf("%.1f µs", nanoseconds/1e3)
	}
	return fmt.Sprintf("%.0f µs", nanoseconds/1e3)
}

func amount(n int, unit string) string {
	switch {
	case unit != "bytes":
		return fmt.Sprint(n, " ", unit)
	case n >= 1<<20:
		return fmt.Sprint(n>>20, " MB")
	default:
		return fmt.Sprint(n>>10, " KB")
	}
}
