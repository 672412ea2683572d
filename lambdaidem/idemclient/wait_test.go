package idemclient_test

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// RFC 9110, 10.2.3: digits or a date; never negative, never a crash, and of what is
// neither nothing.
func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"", "0", "7", "007", " 7\t", "-1", "+1", "1.5", "1e3", "0x10", "٣", "9223372036", "9223372037", "99999999999999999999",
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Fri, 31 Dec 9999 23:59:59 GMT",
		"Mon, 01 Jan 0000 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37", "soon", "\x00"} {
		f.Add(v, "")
		f.Add(v, "Sun, 06 Nov 1994 08:49:30 GMT")
		f.Add(v, v)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		got := idemclient.RetryAfter(h, now)
		if got < 0 {
			t.Fatalf("%q is %v", value, got)
		}
		text := strings.Trim(value, " \t")
		if seconds, err := strconv.ParseUint(text, 10, 64); err == nil && !strings.HasPrefix(text, "+") {
			want := time.Duration(math.MaxInt64)
			if seconds <= math.MaxInt64/uint64(time.Second) {
				want = time.Duration(seconds) * time.Second
			}
			if got != want {
				t.Errorf("%q is %v, want %v", value, got, want)
			}
			return
		}
		if at, err := http.ParseTime(text); err == nil {
			if d, err := http.ParseTime(date); err == nil {
				now = d
			}
			if want := max(0, at.Sub(now)); got != want {
				t.Errorf("%q at %v is %v, want %v", value, now, got, want)
			}
			return
		}
		if got != 0 && got != math.MaxInt64 { // MaxInt64: digits beyond 64 bits
			t.Errorf("%q is %v", value, got)
		}
	})
}
