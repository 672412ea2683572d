package main

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
)

const benchmarked = `goos: linux
BenchmarkCachedReplay-2   	      39	   2903462 ns/op	      3000 ns-beyond	      1400 ns-events	     20000 ns-needed	      1600 ns-own	     23000 ns-whole
BenchmarkCachedReplay-2   	      57	   2813952 ns/op	      1000 ns-beyond	      1400 ns-events	     20000 ns-needed	      1600 ns-own	     23000 ns-whole
BenchmarkCachedReplay-2   	      55	   3629546 ns/op	      2000 ns-beyond	      1400 ns-events	     20000 ns-needed	      1600 ns-own	     23000 ns-whole
PASS
`

func readCachedReplay(out string) (c cachedReplay, err error) {
	all, err := readMetrics("BenchmarkCachedReplay", out)
	if err == nil {
		err = all.read(3, fixed(), map[string]*interval.Estimate{"whole": &c.whole, "needed": &c.needed, "beyond": &c.beyond, "events": &c.events, "own": &c.own})
	}
	return c, err
}

func TestMetricsAreTheMediansOfTheRuns(t *testing.T) {
	c, err := readCachedReplay(benchmarked)
	if err != nil {
		t.Fatal(err)
	}
	if c.beyond.Value != 2000 || c.beyond.Low != 1000 || c.beyond.High != 3000 || c.whole != (between(23000, 23000, 23000)) || c.own.Value != 1600 {
		t.Errorf("read %+v", c)
	}
	for name, out := range map[string]string{
		"a run is missing":   strings.Replace(benchmarked, "BenchmarkCachedReplay", "Benchmark", 1),
		"a figure is gone":   strings.ReplaceAll(benchmarked, "ns-own", "ns-else"),
		"a figure is broken": strings.ReplaceAll(benchmarked, "1600 ns-own", "many ns-own"),
	} {
		if c, err := readCachedReplay(out); err == nil {
			t.Errorf("%s: read %+v", name, c)
		}
	}
}
