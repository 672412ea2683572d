//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process so far, and whether it can be
// had here.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
