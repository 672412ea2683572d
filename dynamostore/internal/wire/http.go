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

// HTTP is the user's HTTP client. It also checks answers for damage, learns DynamoDB's
// clock from them, and hands the SDK's client the outcome of an attempt that a [First]
// has made.
type HTTP struct {
	users      dynamodb.HTTPClient
	checksums  bool // answers are checked
	clockFixed bool // requests are dated by DynamoDB's clock

	clock atomic.Pointer[clockSeen]
}

func newHTTP(users *dynamodb.Options) *HTTP {
	return &HTTP{users: users.HTTPClient, checksums: !users.DisableValidateResponseChecksum, clockFixed: !users.DisableClockSkewCorrection}
}

// Do makes HTTP the HTTP client of the SDK's client.
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

// bodyInMemory gives an SDK's request a body that net/http knows to be in memory. The SDK
// closes its own once the answer's header is there. Where net/http isn't at the
// body's end by then, it takes that for a failure of the request, and closes the
// connection with the rest of the answer unread: "use of closed network connection"
// (aws-sdk-go-v2, issue 2737).
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

// Send sends a request. It returns an answer with a body, or an error.
func (h *HTTP) Send(r *http.Request) (*http.Response, error) {
	resp, err := h.users.Do(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // the user's client's
	}
	if resp == nil || resp.Body == nil {
		return nil, errors.New("the HTTP client returned neither an error nor an answer with a body")
	}
	if h.clockFixed {
		h.look(resp.Header)
	}
	return resp, nil
}

// clockSeen is what an answer's Date told.
type clockSeen struct {
	date string
	skew time.Duration // of DynamoDB's clock to ours
}

// look learns the time from an answer, as the SDK does: not from one that comes
// from a cache.
func (h *HTTP) look(header http.Header) {
	date := first(header, "Date")
	if last := h.clock.Load(); date == "" || last != nil && last.date == date || first(header, "Age") != "" {
		return
	}
	if at, err := smithyhttp.ParseTime(date); err == nil {
		h.clock.Store(&clockSeen{date, time.Until(at)})
	}
}

// Now returns the time by DynamoDB's clock, as far as answers have told it. Requests are
// dated with it.
func (h *HTTP) Now() time.Time {
	if seen := h.clock.Load(); seen != nil {
		return time.Now().Add(seen.skew)
	}
	return time.Now()
}

// fieldChecksum is the header field with the CRC-32 of an answer's body. DynamoDB
// Local sends it with what succeeded alone.
const fieldChecksum = "X-Amz-Crc32"

// first returns what Get returns of a name in its canonical form, which it needn't be
// brought to each time.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// damage returns an error if the body is not the one that was sent.
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

// checkedBody is a body whose end is an error if it is not the one that was sent.
// (The SDK checks it too, and only logs what it finds.)
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
