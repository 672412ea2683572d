package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// sample is one operation's time, and the block that it was measured in.
type sample struct {
	took  time.Duration
	block int
}

// series is samples in the order of their times.
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

// quantile returns the nearest-rank quantile: the least time that at least the share
// q of the samples does not exceed. Each sample counts as often as its block
// does in times; nil: once. It is 0 if nothing counts.
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

// estimate is a number with the interval that 95 of 100 resamplings fall into.
type estimate struct{ value, low, high float64 }

// resamplings is how often a bootstrap draws; its interval moves by little with
// more.
const resamplings = 1000

// ratio estimates ours over floor at a quantile. The two sides of one block were
// measured next to each other, so the bootstrap draws whole blocks, both sides
// together: what slows the machine for a while slows both.
func ratio(floor, ours series, blocks int, q float64, random *rand.Rand) estimate {
	at := func(times []int) float64 {
		return float64(ours.quantile(q, times)) / float64(floor.quantile(q, times))
	}
	return bootstrap(blocks, at, random)
}

// bootstrap estimates a statistic of blocks: of drawing some of them with
// replacement, times saying how often each was drawn; nil: each once.
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
	tail := resamplings / 40 // 2.5 of 100 at each end
	return estimate{value: statistic(nil), low: drawn[tail], high: drawn[resamplings-1-tail]}
}
