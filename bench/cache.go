package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// cachedReplay is what a replay from the process's memory takes: nanoseconds, of
// one that has a body and an answer of 1 KB. The parts that no replay can do
// without are the guard's own, so its package measures them, by turns with the
// whole: see BenchmarkCachedReplay.
type cachedReplay struct {
	whole, needed, beyond, events, own estimate
}

// measureCache runs the benchmark so many times; each run gives medians.
func measureCache(ctx context.Context, runs int, random *rand.Rand) (*cachedReplay, error) {
	progress("a replay from the cache, %d runs of BenchmarkCachedReplay", runs)
	command := exec.CommandContext(ctx, "go", "test", "github.com/lambdaidem/toolkit/lambdaidem",
		"-run", "^$", "-bench", "^BenchmarkCachedReplay$", "-benchtime", "200ms", "-count", strconv.Itoa(runs))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return readCachedReplay(string(out), runs, random)
}

// readCachedReplay reads what go test printed of so many runs.
func readCachedReplay(out string, runs int, random *rand.Rand) (*cachedReplay, error) {
	metrics := map[string][]float64{}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "BenchmarkCachedReplay") {
			continue
		}
		fields := strings.Fields(line)
		for i := 1; i < len(fields); i++ {
			name, ours := strings.CutPrefix(fields[i], "ns-")
			if !ours {
				continue
			}
			n, err := strconv.ParseFloat(fields[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("BenchmarkCachedReplay printed %q", line)
			}
			metrics[name] = append(metrics[name], n)
		}
	}
	var c cachedReplay
	for name, to := range map[string]*estimate{
		"whole": &c.whole, "needed": &c.needed, "beyond": &c.beyond, "events": &c.events, "own": &c.own,
	} {
		values := metrics[name]
		if len(values) != runs {
			return nil, fmt.Errorf("BenchmarkCachedReplay printed ns-%s %d times; want %d:\n%s", name, len(values), runs, out)
		}
		*to = bootstrap(runs, func(times []int) float64 { return median(values, times) }, random)
	}
	return &c, nil
}

// median is that of the values, each as often as it was drawn; nil: once.
func median(values []float64, times []int) float64 {
	var all []float64
	for i, v := range values {
		for range count(times, i) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (c *cachedReplay) table() table {
	row := func(what string, e estimate, aim, verdict string) []string {
		return []string{what, fmt.Sprintf("%.2f µs (%.2f–%.2f)", e.value/1000, e.low/1000, e.high/1000), aim, verdict}
	}
	return table{
		{"a replay from the cache, 1 KB", "measured", "aim", ""},
		row("whole", c.whole, "", ""),
		row("fingerprint, record's id, decoding the answer", c.needed, "", ""),
		row("beyond that", c.beyond, fmt.Sprintf("≤ %.0f µs", aimCached.Seconds()*1e6), string(c.beyond.atMost(float64(aimCached)))),
		row("of it: reading and writing the events", c.events, "", ""),
		row("of it: the guard's own", c.own, "", ""),
	}
}
