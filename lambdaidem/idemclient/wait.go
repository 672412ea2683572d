package idemclient

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// When the next attempt may begin.

// mayWait reports whether a wait would end before the request's deadline.
func mayWait(req *http.Request, wait time.Duration) bool {
	select {
	case <-req.Context().Done():
		return false
	case <-req.Cancel: //nolint:staticcheck // http.Client still uses it for its Timeout
		return false
	default:
	}
	deadline, ok := req.Context().Deadline()
	return !ok || time.Until(deadline) > wait
}

// sum returns a+b for durations that are not negative, or the longest duration if the
// sum would overflow.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// sleep returns nil after d, or why the request ended before.
func sleep(req *http.Request, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-req.Context().Done():
		return context.Cause(req.Context())
	case <-req.Cancel: //nolint:staticcheck // http.Client still uses it for its Timeout
		return errors.New("the request's Cancel was closed")
	}
}

// retryAfter reads Retry-After (RFC 9110, 10.2.3): seconds or an HTTP-date. What is
// neither counts as not sent, and so does a date that has passed. A date is
// compared with the answer's own Date where it has one, so that the two machines'
// clocks don't matter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.Trim(h.Get("Retry-After"), " \t")
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, _ := strconv.ParseInt(value, 10, 64) // of digits alone it is MaxInt64 at worst
		if seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64 // longer than anybody waits
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(0, at.Sub(now))
}
