//go:build !unix

package main

import "time"

// cpuTime reports false, because this system does not provide the processor time.
func cpuTime() (time.Duration, bool) { return 0, false }
