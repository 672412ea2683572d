package main

import (
	"math/rand/v2"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
)

// ratio estimates the quotient of the quantiles of ours and floor. The two sides of a block were
// measured next to each other, so the bootstrap draws whole blocks with both sides: a temporary
// load of the machine affects both.
func ratio(floor, ours series, blocks int, q float64, random *rand.Rand) interval.Estimate {
	at := func(times []int) float64 {
		return float64(ours.quantile(q, times)) / float64(floor.quantile(q, times))
	}
	return interval.Bootstrap(blocks, at, random)
}
