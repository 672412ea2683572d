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

	"github.com/lambdaidem/toolkit/bench/internal/interval"
)

// metrics has the values that the runs of a benchmark of package lambdaidem have reported, by the
// name of the metric without the prefix "ns-".
type metrics map[string][]float64

// runBenchmark runs a benchmark the given number of times and returns its metrics.
func runBenchmark(ctx context.Context, name, benchtime string, runs int) (metrics, error) {
	command := exec.CommandContext(ctx, "go", "test", "github.com/lambdaidem/toolkit/lambdaidem",
		"-run", "^$", "-bench", "^"+name+"$", "-benchtime", benchtime, "-count", strconv.Itoa(runs))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return readMetrics(name, string(out))
}

// readMetrics returns the metrics in the output of go test for a benchmark.
func readMetrics(name, out string) (metrics, error) {
	all := metrics{}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, name) {
			continue
		}
		fields := strings.Fields(line)
		for i := 1; i < len(fields); i++ {
			metric, ours := strings.CutPrefix(fields[i], "ns-")
			if !ours {
				continue
			}
			n, err := strconv.ParseFloat(fields[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("%s printed %q", name, line)
			}
			all[metric] = append(all[metric], n)
		}
	}
	return all, nil
}

// read sets each estimate in into to the median of the metric with that name. It returns an error
// unless each metric has one value for each run.
func (m metrics) read(runs int, random *rand.Rand, into map[string]*interval.Estimate) error {
	for name, to := range into {
		values := m[name]
		if len(values) != runs {
			return fmt.Errorf("the benchmark printed ns-%s %d times; want %d: %v", name, len(values), runs, m)
		}
		*to = interval.Bootstrap(runs, func(times []int) float64 { return median(values, times) }, random)
	}
	return nil
}

// median returns the median of the values. times says how often to count each value; nil counts
// each once.
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
