package wire

import (
	"net/http"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// clockSeen is the difference between DynamoDB's clock and the local clock, as measured when a
// response arrived.
type clockSeen struct {
	date string        // the Date of the response
	skew time.Duration // how far DynamoDB's clock was ahead of the local one
}

// observeClock estimates DynamoDB's clock from the Date of a response. Like the SDK, it
// ignores responses from a cache, which have the header field Age.
func (h *HTTP) observeClock(header http.Header) {
	date := first(header, "Date")
	if last := h.clock.Load(); date == "" || last != nil && last.date == date || first(header, "Age") != "" {
		return
	}
	if at, err := smithyhttp.ParseTime(date); err == nil {
		h.clock.Store(&clockSeen{date, time.Until(at)})
	}
}

// Now returns the current time by DynamoDB's clock, for the date of a request. Until a response has
// been received, or if clock-skew correction is disabled, it returns the local time.
func (h *HTTP) Now() time.Time {
	if seen := h.clock.Load(); seen != nil {
		return time.Now().Add(seen.skew)
	}
	return time.Now()
}
