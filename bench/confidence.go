package main

import (
	"math/rand/v2"
	"slices"
)

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
