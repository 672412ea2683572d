package dynamostore

import (
	"math"
	"testing"
)

// What a stored answer costs by AWS's rules and prices on demand (us-east-1,
// 2026): the arithmetic behind the defaults of Options.
const (
	pricePerWrite = 0.625 // dollars, for a million units
	pricePerRead  = 0.125
)

func writeUnits(size int) int { return (size + bytesPerWrite - 1) / bytesPerWrite }
func readUnits(size int) int  { return (size + 4*bytesPerWrite - 1) / (4 * bytesPerWrite) }

// rest is what an item has beside the answer, at most: bytes.
const rest = 900

// inlineCost and partsCost are of a million completions of an answer, and of the
// replays of them, in dollars; perReplay is how many replays there are for each.
// The lock costs the same either way and is left out.
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

// R3: the default of MaxInline is where parts begin to cost less at the stated
// rate of replays, and the documented others are too.
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
