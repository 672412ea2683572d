package dynamostore

import (
	"math"
	"testing"
)

// These functions compute the cost of a stored answer by AWS's rules and its on-demand prices
// (us-east-1, 2026). The defaults of Options are based on them.
const (
	pricePerWrite = 0.625 // dollars for a million write units
	pricePerRead  = 0.125
)

func writeUnits(size int) int { return (size + bytesPerWrite - 1) / bytesPerWrite }
func readUnits(size int) int  { return (size + 4*bytesPerWrite - 1) / (4 * bytesPerWrite) }

// rest is the maximum size of an item without its answer, in bytes.
const rest = 900

// inlineCost and partsCost return the cost in dollars of a million completions of an answer and of
// its replays. perReplay is the number of replays for each completion. Both leave out the lock,
// which costs the same in both cases.
func inlineCost(answer int, perReplay float64) float64 {
	return pricePerWrite * float64(writeUnits(answer+rest)) * (1 + perReplay)
}

func partsCost(answer int, perReplay float64) float64 {
	units, reads := writeUnits(rest), 0
	for left := answer; left > 0; left -= partSize {
		units += writeUnits(min(left, partSize) + rest)
		reads += readUnits(min(left, partSize) + rest)
	}
	return pricePerWrite*(float64(units)+perReplay*float64(writeUnits(rest))) + pricePerRead*perReplay*float64(reads)
}

// From the sizes that the comment of Options.MaxInline states, within 2 KB, parts cost less than an
// answer in the record. The default is just below the first of these sizes.
func TestR3_TheDefaultThresholdIsWherePartsBeginToCostLess(t *testing.T) {
	for _, c := range []struct {
		perReplay  float64
		documented int
	}{{1. / 20, 22 << 10}, {1. / 50, 54 << 10}} {
		breakEven := 1 << 10
		for ; inlineCost(breakEven, c.perReplay) <= partsCost(breakEven, c.perReplay); breakEven += 1 << 10 {
		}
		if math.Abs(float64(breakEven-c.documented)) > 2<<10 {
			t.Errorf("at %v replays parts cost less from %d KB on; documented are %d KB", c.perReplay, breakEven>>10, c.documented>>10)
		}
		t.Logf("at %v replays for each first request parts cost less from %d KB on", c.perReplay, breakEven>>10)
	}
	o := resolved("New", "test", nil)
	if inlineCost(o.MaxInline, .05) > partsCost(o.MaxInline, .05) || inlineCost(24<<10, .05) < partsCost(24<<10, .05) {
		t.Error("the default is not at the break-even of one replay for 20 first requests")
	}
}
