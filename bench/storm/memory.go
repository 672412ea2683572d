package main

import (
	"fmt"
	"os"
	"strings"
)

// peakMemory returns the peak resident set size of this process in bytes (VmHWM in
// proc_pid_status(5)), or 0 if the system does not report it.
func peakMemory() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes := 0
	if _, err := fmt.Sscanf(peak, "%d kB", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}
