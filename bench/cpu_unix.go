//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that this process has used so far. It reports false if the
// time is not available.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
