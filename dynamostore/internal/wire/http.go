package wire

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// HTTP sends requests with the user's HTTP client. It also verifies the checksums of
// responses, and estimates DynamoDB's clock from their Date fields. If a [First] has already
// made an attempt without the SDK, HTTP sends nothing and returns the outcome of that attempt
// to the SDK's client.
type HTTP struct {
	users         dynamodb.HTTPClient
	checksums     bool // verify the checksums of responses
	correctsClock bool // date requests by DynamoDB's clock instead of the local one

	clock atomic.Pointer[clockSeen] // DynamoDB's clock; nil until a response was received
}

func newHTTP(users *dynamodb.Options) *HTTP {
	return &HTTP{users: users.HTTPClient, checksums: !users.DisableValidateResponseChecksum, correctsClock: !users.DisableClockSkewCorrection}
}

// Do implements dynamodb.HTTPClient for the SDK's client. The first attempt of a call may
// have been sent already without the SDK, by a [First], which is faster. Do then returns the
// response or error of that attempt and sends nothing, so that the SDK treats it as its own
// first attempt.
func (h *HTTP) Do(r *http.Request) (*http.Response, error) {
	if c := callOf(r.Context()); c != nil && c.first != nil {
		made := c.first
		c.first = nil
		return made.outcome(r)
	}
	if err := bodyInMemory(r); err != nil {
		return nil, err
	}
	resp, err := h.Send(r)
	if err == nil && h.checksums && resp.Header.Get(fieldChecksum) != "" {
		resp.Body = &checkedBody{of: resp.Body, want: resp.Header.Get(fieldChecksum), sum: crc32.NewIEEE()}
	}
	return resp, err
}

// bodyInMemory replaces the body of a request of the SDK by a *bytes.Reader in an
// io.NopCloser. net/http recognizes this type as an in-memory reader, and the SDK can't close
// it.
//
// Without the replacement, requests could fail. The SDK closes its own body as soon as it has
// the header of the response. If net/http has not yet reached the end of the request's body, it
// treats this as a failed request and closes the connection before the response is read. The
// error is "use of closed network connection" (aws-sdk-go-v2, issue 2737).
func bodyInMemory(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	_, err := body.ReadFrom(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return fmt.Errorf("read the request's body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	return nil
}

// Send sends a request. It returns a response whose Body is not nil, or an error.
func (h *HTTP) Send(r *http.Request) (*http.Response, error) {
	resp, err := h.users.Do(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // the user's client's
	}
	if resp == nil || resp.Body == nil {
		return nil, errors.New("the HTTP client returned neither an error nor an answer with a body")
	}
	if h.correctsClock {
		h.observeClock(resp.Header)
	}
	return resp, nil
}

// clockSeen is the difference between DynamoDB's clock and the local one, as of a response.
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

// Now returns the time with which to date a request: the time by DynamoDB's clock, or by
// the local clock if no response was received yet or the correction of clocks is disabled.
func (h *HTTP) Now() time.Time {
	if seen := h.clock.Load(); seen != nil {
		return time.Now().Add(seen.skew)
	}
	return time.Now()
}

// fieldChecksum is the header field with the CRC-32 of a response's body. DynamoDB Local
// sends it only if the request succeeded.
const fieldChecksum = "X-Amz-Crc32"

// first is like h.Get, but name must already be in canonical form. This makes it faster.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// damage returns an error if the body does not match the checksum in the header. It returns
// nil if there is no checksum.
func (h *HTTP) damage(header http.Header, body []byte) error {
	want := first(header, fieldChecksum)
	if !h.checksums || want == "" {
		return nil
	}
	return mismatch(want, crc32.ChecksumIEEE(body))
}

func mismatch(want string, got uint32) error {
	if n, err := strconv.ParseUint(want, 10, 32); err != nil || uint32(n) != got {
		return fmt.Errorf("the answer is damaged: its CRC-32 is %d, and %s says %q", got, fieldChecksum, want)
	}
	return nil
}

// checkedBody is a response's body that verifies its checksum. If the checksum is wrong,
// Read returns an error at the end of the body instead of io.EOF. (The SDK also verifies
// the checksum, but it only logs a mismatch.)
type checkedBody struct {
	of   io.ReadCloser
	want string
	sum  hash.Hash32
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.of.Read(p)
	_, _ = b.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if damaged := mismatch(b.want, b.sum.Sum32()); damaged != nil {
			err = damaged
		}
	}
	return n, err //nolint:wrapcheck // io.EOF is to be found as it is
}

func (b *checkedBody) Close() error { return b.of.Close() } //nolint:wrapcheck // the body's own
