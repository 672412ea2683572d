package main

import (
	"fmt"
	"os"
	"strings"
)

// peakMemory returns the most memory that the process has had, in bytes, or 0 if the system
// does not say (proc_pid_status(5): VmHWM is the peak resident set size).
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
