package commands

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ages limits the ages of the records to purge. A zero field sets no limit.
type ages struct {
	least time.Duration // --older-than: the minimum age
	since time.Time     // --since: the earliest time
	until time.Time     // --until; set only if --forget and --since are

	maxSkew time.Duration // --max-skew
}

// parseTime parses the value of the flag with this name. It returns the zero time for an empty
// value.
func parseTime(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is %q; it must be a time as RFC 3339 has it: 2026-11-22T03:00:00Z", flag, value)
	}
	return at, nil
}

// parseAge parses a duration as time.ParseDuration does, or a number of days such as "30d".
// It returns 0 for an empty string.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint16
		var wide uint64
		wide, err = strconv.ParseUint(days, 10, 16)
		n = uint16(wide)
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age <= 0 {
		return 0, fmt.Errorf("--older-than is %q; it must be a duration: 36h, 30d", s)
	}
	return age, nil
}
