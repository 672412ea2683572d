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
