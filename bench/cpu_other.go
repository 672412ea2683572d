//go:build !unix

package main

import "time"

// cpuTime can't be had here.
func cpuTime() (time.Duration, bool) { return 0, false }
