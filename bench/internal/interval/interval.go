// Package interval estimates numbers from repeated measurements, with confidence intervals, and
// compares them with aims.
package interval

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Estimate is a number with its 95% confidence interval.
type Estimate struct{ Value, Low, High float64 }

// String returns the number and the interval in parentheses, such as "0.990 (0.980–0.995)".
func (e Estimate) String() string { return fmt.Sprintf("%.3f (%.3f–%.3f)", e.Value, e.Low, e.High) }

// Exactly returns an estimate without uncertainty: both ends of the interval are value.
func Exactly(value float64) Estimate { return Estimate{value, value, value} }

// resamplings is how often a bootstrap resamples the blocks. More often hardly changes the
// interval.
const resamplings = 1000

// Bootstrap estimates a statistic of blocks. It resamples the blocks with replacement many times.
// Each time, it calls statistic with the number of times that each block was drawn. For
// Estimate.Value it calls statistic(nil), which counts each block once.
func Bootstrap(blocks int, statistic func(times []int) float64, random *rand.Rand) Estimate {
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
	return Estimate{Value: statistic(nil), Low: drawn[tail], High: drawn[resamplings-1-tail]}
}
