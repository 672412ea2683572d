package main

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// engine has the time per message that Guard.SQS takes, that a loop calling Do takes, and their
// difference, in nanoseconds; see BenchmarkMessages of package lambdaidem.
type engine struct{ engine, loop, beyond interval.Estimate }

// measureEngine runs the benchmark the given number of times. Each run reports medians.
func measureEngine(ctx context.Context, runs int, random *mathrand.Rand) (*engine, error) {
	progress("the engine of batches, %d runs of BenchmarkMessages", runs)
	metrics, err := runBenchmark(ctx, "BenchmarkMessages", "3x", runs)
	if err != nil {
		return nil, err
	}
	var e engine
	err = metrics.read(runs, random, map[string]*interval.Estimate{"engine": &e.engine, "loop": &e.loop, "beyond": &e.beyond})
	return &e, err
}

func (e *engine) table() table.Table {
	row := func(what string, x interval.Estimate, aim, verdict string) []string {
		return []string{what, fmt.Sprintf("%.2f µs (%.2f–%.2f)", x.Value/1000, x.Low/1000, x.High/1000), aim, verdict}
	}
	return table.Table{
		{"10,000 SQS messages of 1 KB over the store in memory, each", "measured", "aim", ""},
		row("by the decorator", e.engine, "", ""),
		row("by a loop that calls Do", e.loop, "", ""),
		row("beyond the loop", e.beyond, fmt.Sprintf("≤ %.0f µs", aimEngine.Seconds()*1e6), string(e.beyond.AtMost(float64(aimEngine)))),
	}
}
