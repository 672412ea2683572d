package dynamostore

import (
	"math"
	"strconv"
	"testing"
)

// A whole number has the size that its text has by AWS's rule ("DynamoDB item sizes
// and formats"): the store says by it what no longer fits an item.
func TestX4_AWholeNumberHasTheSizeOfItsText(t *testing.T) {
	check := func(n int64) {
		t.Helper()
		i := integer{n, true}
		if got, want := i.size(), sizeOfNumber(strconv.FormatInt(n, 10)); got != want {
			t.Errorf("%d has size %d; its text has %d", n, got, want)
		}
	}
	for _, n := range []int64{0, 1_767_225_600, 1_767_225_600_123, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		check(n)
	}
	for n := int64(1); n < math.MaxInt64/10; n *= 10 {
		for _, around := range []int64{n - 1, n, n + 1, 7 * n, 12 * n / 10, 99 * n / 10} {
			check(around)
			check(-around)
		}
	}
}
