package dynamostore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// head is what every request of a client begins with. It is taken from a request
// that the SDK made: see direct.rehearse.
type head struct {
	names   []string
	values  []string
	targets map[string]string // X-Amz-Target, by the operation
}

// The header fields that differ from request to request.
const (
	fieldTarget     = "X-Amz-Target"
	fieldInvocation = "Amz-Sdk-Invocation-Id"
	fieldTrace      = "X-Amzn-Trace-Id"
	fieldDate       = "X-Amz-Date"
	fieldToken      = "X-Amz-Security-Token" //nolint:gosec // the name of a field
	fieldSignature  = "Authorization"
)

// newInvocation is an id for a call, a random UUID (RFC 9562, section 5.4).
func newInvocation() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // ends the process if it can't
	random[6], random[8] = random[6]&0x0F|0x40, random[8]&0x3F|0x80
	var text [36]byte
	hex.Encode(text[:8], random[:4])
	hex.Encode(text[9:13], random[4:6])
	hex.Encode(text[14:18], random[6:8])
	hex.Encode(text[19:23], random[8:10])
	hex.Encode(text[24:], random[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// mostFields is how many fields a header has as a rule; one more costs an allocation.
const mostFields = 12

// request builds the attempt's request, but for its signature by those credentials.
func (d *direct) request(ctx context.Context, a *attempt, operation string, to *endpoint, creds *aws.Credentials, invocation string) *http.Request {
	// A map of eight is half of what one of nine is.
	fields := len(d.head.names) + len([...]string{fieldTarget, fieldInvocation, fieldDate, fieldSignature}) + len(to.headers)
	trace, traced := d.trace.id(ctx)
	if traced {
		fields++
	}
	if creds.SessionToken != "" {
		fields++
	}
	header, values := make(http.Header, fields), a.fields[:0]
	set := func(name, value string) {
		n := len(values)
		values = append(values, value)
		header[name] = values[n : n+1 : n+1]
	}
	for i, name := range d.head.names {
		set(name, d.head.values[i])
	}
	set(fieldTarget, d.head.targets[operation])
	set(fieldInvocation, invocation)
	if traced {
		set(fieldTrace, trace)
	}
	for name := range to.headers {
		header.Set(name, to.headers.Get(name))
	}
	a.url = url.URL{Scheme: to.scheme, Host: to.host, Path: to.path}
	a.reader.Reset(a.bytes.plain)
	return (&http.Request{
		Method: http.MethodPost, URL: &a.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		// Readers that net/http knows to be in memory it sends with the header, in
		// one packet.
		Body: io.NopCloser(&a.reader), ContentLength: int64(len(a.bytes.plain)),
	}).WithContext(ctx)
}

// sign signs a request as the SDK does.
func (d *direct) sign(r *http.Request, creds *aws.Credentials, to *endpoint, body []byte, at time.Time) error {
	sum := sha256.Sum256(body)
	var digest [2 * sha256.Size]byte
	hex.Encode(digest[:], sum[:])
	return d.options.HTTPSignerV4.SignHTTP(r.Context(), *creds, r, string(digest[:]), to.name, to.region, at) //nolint:wrapcheck // nobody sees it: the SDK is asked then
}
