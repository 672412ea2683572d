package main

import "time"

// The capacity of one partition, and so of one partition key, in a second (Amazon DynamoDB Developer
// Guide, "Best practices for designing and using partition keys effectively").
const (
	writeUnitsASecond = 1000
	readUnitsASecond  = 3000
)

// throttled returns how many of the calls DynamoDB would have throttled: the calls that exceed the
// limit of units in each second since the wave began.
//
//	sum over all seconds of max(0, calls in the second - limit / units of a call)
//
// The figure is an estimate. DynamoDB lets a burst use capacity that earlier seconds left unused,
// and a client sends a throttled call again.
func throttled(calls []time.Duration, unitsOfACall, limit float64) int {
	in := map[time.Duration]int{}
	for _, at := range calls {
		in[at/time.Second]++
	}
	all := 0
	for _, n := range in {
		all += max(0, n-int(limit/unitsOfACall))
	}
	return all
}

// largestShare divides time into intervals of the given width. It returns the share of the times
// that the fullest interval has, and the share that each interval from the first time to the last
// would have if the times were spread evenly. Both are 0 if there are no times.
func largestShare(times []time.Duration, width time.Duration) (largest, even float64) {
	if len(times) == 0 {
		return 0, 0
	}
	in, most := map[time.Duration]int{}, 0
	first, last := times[0]/width, times[0]/width
	for _, at := range times {
		i := at / width
		in[i]++
		most = max(most, in[i])
		first, last = min(first, i), max(last, i)
	}
	return float64(most) / float64(len(times)), 1 / float64(last-first+1)
}
