package wire

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// HTTP sends requests with the user's HTTP client. It also verifies the checksums of responses, and
// estimates DynamoDB's clock from their Date fields.
//
// A [DirectTransport] makes the first attempt of a request without the SDK's client. If it fails,
// the SDK's client is called to retry the request. HTTP then returns the outcome of the first
// attempt to the SDK's client, instead of sending the request again.
type HTTP struct {
	users         dynamodb.HTTPClient
	checksums     bool // verify the checksums of responses
	correctsClock bool // date requests by DynamoDB's clock instead of the local one

	clock atomic.Pointer[clockSeen] // DynamoDB's clock; nil until a response was received
}

func newHTTP(users *dynamodb.Options) *HTTP {
	return &HTTP{users: users.HTTPClient, checksums: !users.DisableValidateResponseChecksum, correctsClock: !users.DisableClockSkewCorrection}
}

// Do implements dynamodb.HTTPClient for the SDK's client. If a [DirectTransport] has already made
// the first attempt of a call, the first call of Do sends nothing. It returns the response or error
// of that attempt, which the SDK's client treats as its own.
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
		resp.Body = &checkedBody{body: resp.Body, want: resp.Header.Get(fieldChecksum), sum: crc32.NewIEEE()}
	}
	return resp, err
}

// bodyInMemory replaces the body of the SDK's request with a copy that the SDK can't close. The SDK
// closes its own body as soon as it has received the header of the response. If net/http is still
// reading that body, the response is lost: "use of closed network connection" (aws-sdk-go-v2, issue
// 2737).
func bodyInMemory(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	_, err := body.ReadFrom(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return fmt.Errorf("read the request's body: %w", err)
	}
	// net/http recognizes that a *bytes.Reader in an io.NopCloser is in memory, and sends the
	// header and the body in one packet.
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
