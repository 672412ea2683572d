package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// series has samples in ascending order of their times.
type series []sample

// sample is the time of one operation, and the number of its block.
type sample struct {
	took  time.Duration
	block int
}

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
