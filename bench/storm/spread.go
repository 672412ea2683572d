package main

import "time"

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
