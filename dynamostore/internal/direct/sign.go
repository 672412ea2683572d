package direct

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// The direct transport signs most requests itself. It uses the SDK's signer if its own
// code could produce a different signature, or if the SDK's signer also logs.

// signing is the state for signing one request. It builds the canonical request (IAM User Guide,
// "Create a signed AWS API request") of a POST to the root path without a query.
type signing struct {
	text  []byte // the canonical request
	bySDK bool   // the SDK's signer signs this request, so text is not needed
}

var signings = sync.Pool{New: func() any { return new(signing) }}

// newSigning returns a *signing from the pool, for a request to the endpoint dest with the
// credentials creds. The caller must call its method done after use.
func (t *Transport) newSigning(dest *endpoint, creds *aws.Credentials) *signing {
	s, _ := signings.Get().(*signing)
	s.bySDK = !t.signsItself || !dest.plain || !plainToken(creds.SessionToken)
	s.text = append(s.text[:0], "POST\n/\n\n"...)
	return s
}

// done returns s to the pool of signings. It first clears s.text, because the canonical request
// contains the session token.
func (s *signing) done() {
	clear(s.text)
	const maxPooled = 64 << 10 // bytes; larger buffers are left to the garbage collector
	if cap(s.text) <= maxPooled {
		signings.Put(s)
	}
}

// add appends a signed header field to the canonical request. The parameter line is the field's
// name and a colon. If line is "", the field is not signed, and add does nothing. It also does
// nothing if the SDK's signer signs the request.
func (s *signing) add(line, value string) {
	if line != "" && !s.bySDK {
		s.text = append(append(append(s.text, line...), value...), '\n')
	}
}

// canonical completes and returns the canonical request. signedHeaders lists the names of the
// signed header fields, separated by semicolons. digest is the SHA-256 of the body. The slice is
// valid until done is called.
func (s *signing) canonical(signedHeaders string, digest *[sha256.Size]byte) []byte {
	s.text = append(append(append(s.text, '\n'), signedHeaders...), '\n')
	s.text = hex.AppendEncode(s.text, digest[:])
	return s.text
}

// plainToken reports whether a session token certainly appears unchanged in the canonical
// request. White space is normalized there, so plainToken returns false for a token that contains
// a space, or that begins or ends with white space. The SDK's signer must then sign the request.
func plainToken(token string) bool {
	return strings.IndexByte(token, ' ') < 0 && strings.TrimSpace(token) == token
}

// silent reports whether signer is the SDK's own signer and logs nothing. This package replaces
// only such a signer, because package sigv4 writes no log. silent returns false if it can't find
// out, for example if the signer of a later version of the SDK has no LogSigning option.
func silent(signer dynamodb.HTTPSignerV4) bool {
	own, ok := signer.(*v4.Signer)
	if !ok || own == nil {
		return false
	}
	options := reflect.ValueOf(own).Elem().FieldByName("options")
	if options.Kind() != reflect.Struct {
		return false
	}
	logs := options.FieldByName("LogSigning")
	return logs.Kind() == reflect.Bool && !logs.Bool()
}

// signedNames returns the names of the signed header fields of a request that the SDK
// signed, in lower case and in the order of the signature.
func signedNames(h http.Header) []string {
	_, names, _ := strings.Cut(h.Get(fieldSignature), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	return strings.Split(names, ";")
}
