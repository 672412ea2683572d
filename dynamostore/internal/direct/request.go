package direct

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lambdaidem/toolkit/dynamostore/internal/direct/sigv4"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// head describes the header fields of a client's requests. Transport.rehearse copies them
// from a request that the SDK built.
type head struct {
	fields  []headField               // the signed fields in the order of the signature, followed by all other fields
	targets map[wire.Operation]string // the values of X-Amz-Target
	// The names of the signed fields, separated by semicolons. signedSession is for
	// credentials with a session token, signed is for credentials without one.
	signedSession, signed string
}

// headField describes one header field.
type headField struct {
	name  string // the field's name; "" if net/http adds the field
	value string // the field's value; "" if it differs between requests
	line  string // the beginning of the field's line in the canonical request, such as "host:"; "" if the field is not signed
}

// The header fields whose values differ between requests.
const (
	fieldTarget     = "X-Amz-Target"
	fieldInvocation = "Amz-Sdk-Invocation-Id"
	fieldTrace      = "X-Amzn-Trace-Id"
	fieldDate       = "X-Amz-Date"
	fieldToken      = "X-Amz-Security-Token" //nolint:gosec // the name of a field
	fieldSignature  = "Authorization"
)

// lineHost and lineLength begin the lines of two header fields in the canonical request. The
// signature covers both fields, but http.Request.Header does not contain them: net/http adds them
// when it sends the request.
const (
	lineHost   = "host:"
	lineLength = "content-length:"
)

// newInvocation returns an Amz-Sdk-Invocation-Id for a call, a random UUID (RFC 9562,
// section 5.4).
func newInvocation() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never returns an error
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

// mostFields is the number of header fields whose values fit into attempt.fields. If a request
// has more, append allocates a larger slice.
const mostFields = 12

// request builds and signs the HTTP request of an attempt. Its parameters are:
//
//	dbReq       the request to DynamoDB
//	dest        the endpoint
//	creds       the credentials to sign with
//	invocation  the id of the call
//	signedAt    the date of the signature
func (t *Transport) request(ctx context.Context, a *attempt, dbReq *wire.Request, dest *endpoint, creds *aws.Credentials, invocation string, signedAt time.Time) (*http.Request, error) {
	// Count the header fields, to create the map with the exact size: for nine fields, Go allocates
	// twice as much memory as for eight. Leave out host and content-length, which net/http sends
	// without an entry in the map, and the session token, which is counted below.
	fields := len(t.head.fields) - len([...]string{lineHost, lineLength, fieldToken}) + len([...]string{fieldSignature}) + len(dest.headers)
	trace, traced := t.trace.id(ctx)
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
	var room [len(sigv4.TimeFormat)]byte
	date := string(sigv4.AppendDate(room[:0], signedAt))
	s := t.newSigning(dest, creds)
	defer s.done()
	for i := range t.head.fields {
		f := &t.head.fields[i]
		value := f.value
		switch f.name {
		case fieldTarget:
			value = t.head.targets[dbReq.Operation]
		case fieldInvocation:
			value = invocation
		case fieldDate:
			value = date
		case fieldToken:
			value = creds.SessionToken
		case "":
			value = dest.host
			if f.line == lineLength {
				value = strconv.Itoa(len(dbReq.Body))
			}
		}
		if signers := f.name == fieldDate || f.name == fieldToken; signers && (s.bySDK || value == "") {
			continue // the SDK's signer sets date and token itself; without a session token, the field is not sent
		}
		if f.name != "" {
			set(f.name, value)
		}
		s.add(f.line, value)
	}
	if traced {
		set(fieldTrace, trace)
	}
	for name := range dest.headers {
		header.Set(name, dest.headers.Get(name))
	}
	a.url = url.URL{Scheme: dest.scheme, Host: dest.host, Path: dest.path}
	a.reader.Reset(dbReq.Body)
	r := (&http.Request{
		Method: http.MethodPost, URL: &a.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		// net/http recognizes that a *bytes.Reader in an io.NopCloser is in memory, and sends the
		// header and the body in one packet.
		Body: io.NopCloser(&a.reader), ContentLength: int64(len(dbReq.Body)),
	}).WithContext(ctx)
	digest := sha256.Sum256(dbReq.Body)
	if s.bySDK {
		return r, t.options.HTTPSignerV4.SignHTTP(ctx, *creds, r, hex.EncodeToString(digest[:]), dest.name, dest.region, signedAt) //nolint:wrapcheck // Attempt drops this error, and the SDK's client sends the request
	}
	signed := t.head.signed
	if creds.SessionToken != "" {
		signed = t.head.signedSession
	}
	set(fieldSignature, t.signer.Authorization(creds, sigv4.Scope{Region: dest.region, Service: dest.name}, date, signed, s.canonical(signed, &digest)))
	return r, nil
}
