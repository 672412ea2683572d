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

// This file decides when the next attempt begins, and waits for it.

// mayWait reports whether there is time to wait before the next attempt: the request is not
// canceled, and the wait would end before the deadline of the request's context.
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

// sleep waits for d and returns nil. If the request is canceled during the wait, or its deadline
// passes, sleep returns at once, with the reason as an error.
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

// retryAfter returns the wait that the Retry-After header asks for: a number of seconds or an
// HTTP-date (RFC 9110, section 10.2.3). The result is 0 if the header is missing or invalid, or if
// its date has passed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.Trim(h.Get("Retry-After"), " \t")
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, _ := strconv.ParseInt(value, 10, 64) // a string of digits fails only by overflow; ParseInt then returns MaxInt64
		if seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64 // too long for a time.Duration
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	// The clocks of client and server may differ, so compare two times of the server.
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(0, at.Sub(now))
}
