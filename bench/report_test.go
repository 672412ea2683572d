package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// example returns results with one comparison and one growth of known numbers.
func example() *results {
	c := comparison{scenario: scenarios[0], plan: plan{atOnce: 1}, median: between(0.99, 0.98, 0.995), p99: between(1.07, 1.06, 1.08)}
	for side := range sides {
		c.took[side] = newSeries([][]time.Duration{{time.Millisecond, 2 * time.Millisecond}})
		n := int64(side + 1)
		c.cost[side] = cost{operations: 2, cpu: time.Duration(n) * time.Millisecond, allocations: uint64(200 * n), bytes: 4096,
			trips: 4, sent: 3000, received: 1000, cpuMeasured: true}
	}
	other, none := c, c
	c.scenario.aims = aims{1, 1.05, 2, 1.99}
	other.scenario.name, other.plan.atOnce, other.scenario.aimsAtOnce = "another aim", 64, aims{median: 0.985, p99: 1.07}
	none.scenario.name, none.scenario.aims = "no aim", aims{}
	none.scenario.sides = [sides]string{"one way", "another"}
	return &results{
		comparisons: []comparison{c, other, none},
		large: &largeResults{bytes: 6 << 20, first: c.took[floorSide], next: newSeries([][]time.Duration{{5e6}, {7e6}, {9e6}}),
			cost: [2]cost{{operations: 2, trips: 54, sent: 4 << 20}, {operations: 3, trips: 78, received: 3 << 20}}},
		cached:   &cachedReplay{whole: between(9000, 8000, 9100), beyond: between(2000, 1990, 2010)},
		messages: throughputOf([][sides]float64{{floorSide: 1, oursSide: 2}, {floorSide: 3, oursSide: 3}}, fixed()),
		engine:   &engine{engine: between(15000, 14000, 15500), loop: between(21000, 20000, 22000), beyond: between(5500, 5100, 5600)},
		guard: &guardResults{
			call:    between(14_000, 13_000, 16_000),
			cost:    cost{operations: 10, allocations: 605},
			hostile: []growth{{input: hostile[0], small: 1 << 16, large: 1 << 20, nanoseconds: 2 << 20, factor: between(40, 39, 41)}},
		},
	}
}

func TestTheReportSaysWhatWasMeasuredAndWhetherItIsMet(t *testing.T) {
	for name, write := range map[string]func(*results, *strings.Builder){
		"text":     func(r *results, b *strings.Builder) { r.print(b) },
		"markdown": func(r *results, b *strings.Builder) { r.printMarkdown(b) },
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			write(example(), &b)
			text := strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "|", " ")), " ")
			for _, want := range []string{
				"new 1 2 × 2 0.990 (0.980–0.995) ≤ 1.00: met 1.070 (1.060–1.080) ≤ 1.05: missed 2.00 ≤ 2.00: met 2.00 ≤ 1.99: missed",
				"another aim 64 2 × 2 0.990 (0.980–0.995) ≤ 0.98: too close to tell 1.070 (1.060–1.080) ≤ 1.07: too close to tell 2.00 2.00",
				"no aim 1 2 × 2 0.990 (0.980–0.995) 1.070 (1.060–1.080) 2.00",
				"no aim 1 one way 1000 µs",
				"no aim 1 another 1000 µs",
				"new 2 1 ms 1 ms 2 ms 27.00 2.00 MB 0.00 MB yes",
				"replay 3 7 ms 5 ms 9 ms 26.00 0.00 MB 1.00 MB yes",
				"whole 9.00 µs (8.00–9.10)",
				"messages a second 2 200 160 0.800 (0.500–1.000) too close to tell",
				"by the decorator 15.00 µs (14.00–15.50)",
				"beyond the loop 5.50 µs (5.10–5.60) ≤ 5 µs missed",
				"beyond that 2.00 µs (1.99–2.01) ≤ 1 µs missed",
				"new 1 bare SDK 1000 µs 2000 µs 500 µs 100 2.0 KB 1500 B 500 B 2.00",
				"new 1 toolkit 1000 µs 2000 µs 1000 µs 200 2.0 KB 1500 B 500 B 2.00",
				"time 14.0 µs (13.0–16.0) ≤ 15 µs too close to tell",
				"allocations 60.5 ≤ 60 missed",
				"arrays as deep as allowed 64 KB 1 MB 2097 µs 2.00 40.0 (39.0–41.0) missed",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("the report lacks %q:\n%s", want, b.String())
				}
			}
		})
	}
}

func TestMoreProcessorsThanThereAreAreShared(t *testing.T) {
	var r results
	leave := r.keepTo(1 << 20)
	if r.processors != 1<<20 || r.shared == nil || !strings.Contains(r.where(), "They share") {
		t.Errorf("%q, %v", r.where(), r.shared)
	}
	if err := leave(); err != nil {
		t.Error(err)
	}
	r = results{}
	if leave = r.keepTo(0); r.processors != 0 || r.shared != nil || leave() != nil {
		t.Errorf("%q, %v", r.where(), r.shared)
	}
}

// The report says which processors the client and the database used.
func TestTheReportSaysOnWhatItWasMeasured(t *testing.T) {
	for want, r := range map[string]*results{
		"They keep to 1 of the processors, the others are left to it.":   {processors: 1},
		"They share the processors with it: no right to.":                {processors: 1, shared: errors.New("no right to")},
		"settings. They share the processors with it. Blocks":            {},
		"They keep to 2 of the processors, the others are left to it. B": {processors: 2},
	} {
		var b strings.Builder
		r.comparisons = []comparison{}
		r.print(&b)
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestEveryRowOfATableHasAsManyCells(t *testing.T) {
	for _, one := range example().tables() {
		for _, row := range one {
			if len(row) != len(one[0]) {
				t.Errorf("row %q has %d cells; its head %q has %d", row, len(row), one[0], len(one[0]))
			}
		}
	}
}

func TestFlags(t *testing.T) {
	s, err := parseFlags([]string{"-quick", "-only", "guard", "-markdown"})
	if want := (settings{samples: 1000, blocks: 12, runs: 5, parts: "guard", processors: 1, markdown: true}); err != nil || s != want {
		t.Errorf("settings are %+v, %v; want %+v", s, err, want)
	}
	for _, n := range []int{0, 1, 3} {
		if s, err := parseFlags([]string{"-processors", strconv.Itoa(n)}); err != nil || s.processors != n {
			t.Errorf("-processors %d: %+v, %v", n, s, err)
		}
	}
	for _, args := range [][]string{{"-samples", "10"}, {"-only", "floor"}, {"-processors", "-1"}, {"more"}, {"-unknown"}} {
		if s, err := parseFlags(args); err == nil {
			t.Errorf("%q was taken as %+v", args, s)
		}
	}
}
