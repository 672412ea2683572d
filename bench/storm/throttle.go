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
