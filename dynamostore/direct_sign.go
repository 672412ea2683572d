package dynamostore

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

// The direct transport signs most requests itself. It has the SDK's signer do it
// where that could come to another signature, or does more than to sign.

// signing is the canonical request (IAM User Guide, "Create a signed AWS API request")
// of a POST to the root path without a query, as it grows.
type signing struct {
	text []byte
	off  bool // the SDK's signer signs
}

var signings = sync.Pool{New: func() any { return new(signing) }}

// signing begins one for a request to that endpoint.
func (d *direct) signing(to *endpoint, creds *aws.Credentials) *signing {
	s, _ := signings.Get().(*signing)
	s.off = !d.signsItself || !to.plain || !plainToken(creds.SessionToken)
	s.text = append(s.text[:0], "POST\n/\n\n"...)
	return s
}

// done gives it back, without the session's token that was in it.
func (s *signing) done() {
	clear(s.text)
	if cap(s.text) <= mostKept {
		signings.Put(s)
	}
}

// add adds a header field, if it has a line.
func (s *signing) add(line, value string) {
	if line != "" && !s.off {
		s.text = append(append(append(s.text, line...), value...), '\n')
	}
}

// canonical is the whole of it. It is the signing's, and good until that is done.
func (s *signing) canonical(signed string, digest *[sha256.Size]byte) []byte {
	s.text = append(append(append(s.text, '\n'), signed...), '\n')
	s.text = hex.AppendEncode(s.text, digest[:])
	return s.text
}

// plainToken tells whether the canonical request has a session's token as it is.
func plainToken(token string) bool {
	return strings.IndexByte(token, ' ') < 0 && strings.TrimSpace(token) == token
}

// silent tells whether all that a signer does is to sign. The SDK's can log what it
// signs, too; if a later one does not say so, it is taken to.
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

// signedNames are the names of the fields that a request of the SDK's has signed, in
// lower case and in their order.
func signedNames(h http.Header) []string {
	_, names, _ := strings.Cut(h.Get(fieldSignature), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	return strings.Split(names, ";")
}
