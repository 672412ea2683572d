package lambdaidem

import (
	"encoding/base64"
	"strings"
)

// Request is an HTTP request, regardless of the kind of event or server that it came from.
type Request struct {
	Method string // in upper case
	Host   string // the host of a net/http request, in lower case; empty for events
	Path   string // the path that the client requested, escaped as it was sent; HTTP APIs decode it
	Route  string // route template without method; empty if there is none
	Query  string // raw query, without "?"
	Body   []byte // decoded if the event had it as base64

	// Principal identifies the caller that the gateway has authenticated. Its prefix says how:
	// "jwt:ISS|SUB", "iam:ARN", "authorizer:ID", "cognito:ID", "mtls:SUBJECT|ISSUER" or
	// "apikey:ID". If many Cognito users share the ARN and the gateway names the Cognito identity,
	// the identity follows the ARN: "iam:ARN|IDENTITY". Principal is empty if the gateway has
	// authenticated nobody. A "|" or "%" within a part is written as %7C or %25.
	Principal string

	headers  headers
	nHeaders int // number of headers, to compare with Options.MaxHeaders
	// anonymous is an error text for a caller whom the gateway has authenticated, but whom the
	// event does not name. It says what the event lacks. Principal is then empty.
	anonymous string
	malformed *Error      // why the event could not be decoded; nil if it could
	derived   *derivedKey // the result of Options.Key; nil until the guard has called it
}

// Values returns the values of the header with the given name, in their order. The case of the name
// does not matter. The events of HTTP APIs and function URLs list cookies separately from the
// headers. Values joins these cookies with "; " and returns them as one value of "Cookie".
func (r *Request) Values(name string) []string { return r.headers.appendTo(nil, name) }

// contentType returns the Content-Type header. If the request has several, contentType joins
// them with commas. The result is then not a valid media type, so it does not count as JSON.
func (r *Request) contentType() string {
	var room [1]string
	return strings.Join(r.headers.appendTo(room[:0], "Content-Type"), ", ")
}

// setBody sets r.Body to the body of an event, and decodes it if isBase64 is true. If the
// body is not valid base64, setBody stores the error in r.malformed. The guard then refuses
// the request, unless the request runs unguarded.
func (r *Request) setBody(body string, isBase64 bool) {
	if !isBase64 {
		r.Body = []byte(body)
		return
	}
	var err error
	if r.Body, err = base64.StdEncoding.DecodeString(body); err != nil {
		r.malformed = requestInvalid("The body is marked as base64 and is not.", err)
	}
}
