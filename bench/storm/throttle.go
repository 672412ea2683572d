package main

import "time"

// What DynamoDB allows one partition, and so one partition key, in a second (Amazon DynamoDB
// Developer Guide, "Best practices for designing and using partition keys effectively").
const (
	writeUnitsASecond = 1000
	readUnitsASecond  = 3000
)

// throttled returns how many of the calls DynamoDB would have throttled. For each second since
// the wave began, these are the calls whose units exceed the limit of a second:
//
//	sum over all seconds of max(0, calls in the second - limit / units of a call)
//
// It ignores that DynamoDB lets unused capacity of earlier seconds be used in a burst, and that a
// throttled call is sent again.
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

// largestShare returns the largest share of the times that fall into one interval of the given
// width, and the share that each interval would have if the times between the first and the last
// were spread evenly. Both are 0 if there are no times.
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
