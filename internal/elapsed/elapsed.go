// Package elapsed measures how much time has passed in a process that may be frozen.
//
// A time from time.Now has two readings, and neither is reliable: the monotonic clock stops
// while Lambda has frozen the process or the machine sleeps, and the wall clock can be set.
package elapsed

import "time"

// Since returns the time since from, a result of time.Now. See Between.
func Since(from time.Time) (d time.Duration, known bool) { return Between(from, time.Now()) }

// Between returns the time between two results of time.Now, from and the later to. It measures
// the time by the monotonic clock and by the wall clock, and returns the longer duration.
//
// If the wall clock was set back to before from, known is false: the process may have been
// frozen for any length of time since then, and d is the time by the monotonic clock alone.
func Between(from, to time.Time) (d time.Duration, known bool) {
	wall := to.Round(0).Sub(from.Round(0)) // Round(0) removes the monotonic reading
	return max(wall, to.Sub(from)), wall >= 0
}
