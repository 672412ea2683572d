package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// sample is the time of one operation, and the number of its block.
type sample struct {
	took  time.Duration
	block int
}

// series has samples in ascending order of their times.
type series []sample

func newSeries(blocks [][]time.Duration) series {
	var s series
	for i, block := range blocks {
		for _, took := range block {
			s = append(s, sample{took, i})
		}
	}
	slices.SortFunc(s, func(a, b sample) int { return cmp.Compare(a.took, b.took) })
	return s
}

// quantile returns the nearest-rank quantile: the smallest time such that at least the share q of
// the samples take no longer. times says how often to count the samples of each block; nil counts
// each once. quantile returns 0 if no sample counts.
func (s series) quantile(q float64, times []int) time.Duration {
	total := 0
	for _, x := range s {
		total += count(times, x.block)
	}
	rank := max(1, int(math.Ceil(q*float64(total)-1e-9)))
	seen := 0
	for _, x := range s {
		if seen += count(times, x.block); seen >= rank {
			return x.took
		}
	}
	return 0
}

func count(times []int, block int) int {
	if times == nil {
		return 1
	}
	return times[block]
}

// estimate is a number with its 95% confidence interval.
type estimate struct{ value, low, high float64 }

// resamplings is the number of draws of a bootstrap. More draws hardly change the interval.
const resamplings = 1000

// ratio estimates the quotient of the quantiles of ours and floor. The two sides of a block were
// measured next to each other, so the bootstrap draws whole blocks with both sides: a temporary
// load of the machine affects both.
func ratio(floor, ours series, blocks int, q float64, random *rand.Rand) estimate {
	at := func(times []int) float64 {
		return float64(ours.quantile(q, times)) / float64(floor.quantile(q, times))
	}
	return bootstrap(blocks, at, random)
}

// bootstrap estimates a statistic of blocks. It draws blocks with replacement many times, and
// passes how often each was drawn to statistic. For the value itself, it passes nil, which counts
// each block once.
func bootstrap(blocks int, statistic func(times []int) float64, random *rand.Rand) estimate {
	drawn := make([]float64, resamplings)
	times := make([]int, blocks)
	for i := range drawn {
		clear(times)
		for range blocks {
			times[random.IntN(blocks)]++
		}
		drawn[i] = statistic(times)
	}
	slices.Sort(drawn)
	tail := resamplings / 40 // 2.5 percent at each end
	return estimate{value: statistic(nil), low: drawn[tail], high: drawn[resamplings-1-tail]}
}
