package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// cachedReplay has the time of a replay from the process's memory, with a body and an answer of 1
// KB, in nanoseconds. BenchmarkCachedReplay of package lambdaidem measures it, and in turns with it
// the parts that no replay can do without, because those are internal to that package.
type cachedReplay struct {
	whole, needed, beyond, events, own interval.Estimate
}

// measureCache runs the benchmark the given number of times. Each run reports medians.
func measureCache(ctx context.Context, runs int, random *rand.Rand) (*cachedReplay, error) {
	progress("a replay from the cache, %d runs of BenchmarkCachedReplay", runs)
	metrics, err := runBenchmark(ctx, "BenchmarkCachedReplay", "200ms", runs)
	if err != nil {
		return nil, err
	}
	var c cachedReplay
	err = metrics.read(runs, random, map[string]*interval.Estimate{
		"whole": &c.whole, "needed": &c.needed, "beyond": &c.beyond, "events": &c.events, "own": &c.own,
	})
	return &c, err
}

func (c *cachedReplay) table() table.Table {
	row := func(what string, e interval.Estimate, aim, verdict string) []string {
		return []string{what, fmt.Sprintf("%.2f µs (%.2f–%.2f)", e.Value/1000, e.Low/1000, e.High/1000), aim, verdict}
	}
	return table.Table{
		{"a replay from the cache, 1 KB", "measured", "aim", ""},
		row("whole", c.whole, "", ""),
		row("fingerprint, record's id, decoding the answer", c.needed, "", ""),
		row("beyond that", c.beyond, fmt.Sprintf("≤ %.0f µs", aimCached.Seconds()*1e6), string(c.beyond.AtMost(float64(aimCached)))),
		row("of it: reading and writing the events", c.events, "", ""),
		row("of it: the guard's own", c.own, "", ""),
	}
}
