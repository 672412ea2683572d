package commands

import (
	"fmt"
	"time"
)

// relative returns a duration as "in 2h5m" or, if it is negative, as "2h5m ago".
func relative(d time.Duration) string {
	if d < 0 {
		return span(-d) + " ago"
	}
	return "in " + span(d)
}

// span returns a duration in its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	d = d.Round(time.Second)
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}
