package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
)

func between(value, low, high float64) interval.Estimate {
	return interval.Estimate{Value: value, Low: low, High: high}
}

func fixed() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// A load that slows both sides of a block does not change the ratio.
func TestRatioIsThatOfPairedBlocks(t *testing.T) {
	random := fixed()
	var floor, ours [][]time.Duration
	for range 100 {
		load := time.Duration(1000 + random.IntN(9000)) // the machine's load during the block
		floor = append(floor, []time.Duration{load, load + 1, load + 2})
		ours = append(ours, []time.Duration{load * 5 / 4, (load + 1) * 5 / 4, (load + 2) * 5 / 4})
	}
	for _, q := range []float64{0.5, 0.99} {
		e := ratio(newSeries(floor), newSeries(ours), 100, q, random)
		if math.Abs(e.Value-1.25) > 0.001 || math.Abs(e.Low-1.25) > 0.001 || math.Abs(e.High-1.25) > 0.001 {
			t.Errorf("ratio at %v is %v; want 1.25, and nothing else", q, e)
		}
	}
}

// The interval contains the true value in about 95 of 100 experiments.
func TestBootstrapIntervalHoldsTheTruth(t *testing.T) {
	random := fixed()
	const experiments, blocks, truth = 100, 60, 1.0
	held := 0
	for range experiments {
		var floor, ours [][]time.Duration
		for range blocks {
			draw := func() []time.Duration {
				return []time.Duration{time.Duration(1e6 * math.Exp(random.NormFloat64()/4))}
			}
			floor, ours = append(floor, draw()), append(ours, draw())
		}
		e := ratio(newSeries(floor), newSeries(ours), blocks, 0.5, random)
		if e.Low > e.Value || e.Value > e.High {
			t.Fatalf("the estimate is outside its interval: %v", e)
		}
		if e.Low <= truth && truth <= e.High {
			held++
		}
	}
	if share := float64(held) / experiments; share < 0.88 || share == 1 {
		t.Errorf("the interval held the truth in %.1f of 100 cases; want about 95", 100*share)
	}
}

func TestMeanIsThatOfAll(t *testing.T) {
	if got := mean([]time.Duration{1, 2, 6}); got != 3 {
		t.Errorf("mean is %d; want 3", got)
	}
	if got := mean(nil); got != 0 {
		t.Errorf("mean of nothing is %d; want 0", got)
	}
}
