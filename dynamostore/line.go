package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// line is the user's HTTP client, as both transports use it. What the direct one
// has received already it gives to the SDK's.
type line struct {
	users      dynamodb.HTTPClient
	checksums  bool // answers are checked
	clockFixed bool // requests are dated by DynamoDB's clock

	clock atomic.Pointer[clockSeen]
}

func newLine(users *dynamodb.Options) *line {
	return &line{users: users.HTTPClient, checksums: !users.DisableValidateResponseChecksum, clockFixed: !users.DisableClockSkewCorrection}
}

// Do is the HTTP client of the SDK's client.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	if v := verdictOf(r.Context()); v != nil && v.first != nil {
		first := v.first
		v.first = nil
		return first.again(r)
	}
	if err := bodyInMemory(r); err != nil {
		return nil, err
	}
	resp, err := l.send(r)
	if err == nil && l.checksums && resp.Header.Get(fieldChecksum) != "" {
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

// send sends a request. What it has of an answer is complete, but for the body.
func (l *line) send(r *http.Request) (*http.Response, error) {
	resp, err := l.users.Do(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // the user's client's
	}
	if resp == nil || resp.Body == nil {
		return nil, errors.New("the HTTP client returned neither an error nor an answer with a body")
	}
	if l.clockFixed {
		l.look(resp.Header)
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
func (l *line) look(h http.Header) {
	date := first(h, "Date")
	if last := l.clock.Load(); date == "" || last != nil && last.date == date || first(h, "Age") != "" {
		return
	}
	if at, err := smithyhttp.ParseTime(date); err == nil {
		l.clock.Store(&clockSeen{date, time.Until(at)})
	}
}

// now is the time that requests are dated with.
func (l *line) now() time.Time {
	if seen := l.clock.Load(); seen != nil {
		return time.Now().Add(seen.skew)
	}
	return time.Now()
}

// fieldChecksum is the header field with the CRC-32 of an answer's body. DynamoDB
// Local sends it with what succeeded alone.
const fieldChecksum = "X-Amz-Crc32"

// first is what Get returns of a name in its canonical form, which it needn't be
// brought to each time.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// damage returns an error if the body is not the one that was sent.
func (l *line) damage(h http.Header, body []byte) error {
	want := first(h, fieldChecksum)
	if !l.checksums || want == "" {
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

// traces gives requests the header field by which Lambda detects recursive calls,
// as the SDK's own middleware writes it.
type traces struct{ last atomic.Pointer[trace] }

type trace struct{ raw, field string }

func (t *traces) id(ctx context.Context) (id string, ok bool) {
	raw, traced := os.LookupEnv("_X_AMZN_TRACE_ID") // an empty one is sent too
	if !traced {
		return "", false
	}
	if _, inLambda := os.LookupEnv("AWS_LAMBDA_FUNCTION_NAME"); !inLambda {
		return "", false
	}
	if last := t.last.Load(); last != nil && last.raw == raw {
		return last.field, true
	}
	req, _ := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	_, _, _ = (&awsmiddleware.RecursionDetection{}).HandleBuild(ctx, middleware.BuildInput{Request: req}, nowhere{}) // no error
	found := &trace{raw, req.Header.Get(fieldTrace)}
	t.last.Store(found)
	return found.field, true
}

// nowhere is the end of a middleware stack.
type nowhere struct{}

func (nowhere) HandleBuild(context.Context, middleware.BuildInput) (middleware.BuildOutput, middleware.Metadata, error) {
	return middleware.BuildOutput{}, middleware.Metadata{}, nil
}
