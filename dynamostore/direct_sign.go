package dynamostore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/sigv4"
)

// The direct transport signs most requests itself. It has the SDK's signer do it
// where that could come to another signature, or does more than to sign.

// signing is the canonical request (IAM User Guide, "Create a signed AWS API request")
// of a POST to the root path without a query, as it grows, and its date.
type signing struct {
	date string
	text []byte
}

var signings = sync.Pool{New: func() any { return new(signing) }}

func newSigning(at time.Time) *signing {
	s, _ := signings.Get().(*signing)
	var date [len(sigv4.TimeFormat)]byte
	s.date = string(sigv4.AppendDate(date[:0], at))
	s.text = append(s.text[:0], "POST\n/\n\n"...)
	return s
}

// done gives the signing back. It has a session's token in it, which outlives none of
// the credentials.
func (s *signing) done() { signings.Put(s) }

// add adds a header field, if it has a line.
func (s *signing) add(line, value string) {
	if line != "" {
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
// signs, too.
func silent(signer dynamodb.HTTPSignerV4) bool {
	own, ok := signer.(*v4.Signer)
	if !ok {
		return false
	}
	logs := reflect.ValueOf(own).Elem().FieldByName("options").FieldByName("LogSigning")
	return logs.IsValid() && logs.Kind() == reflect.Bool && !logs.Bool()
}

// signedBy returns the names of the fields that a request of the SDK's has signed.
func signedBy(h http.Header) ([]string, error) {
	_, rest, _ := strings.Cut(h.Get(fieldSignature), "SignedHeaders=")
	names, _, ok := strings.Cut(rest, ",")
	all := strings.Split(names, ";")
	for _, name := range all {
		if known := http.CanonicalHeaderKey(name); known == fieldTrace || name+":" != lineHost && name+":" != lineLength && h.Get(known) == "" {
			ok = false
		}
	}
	if !ok {
		return nil, errors.New("the SDK signs its requests in another way than this package knows: " + names)
	}
	return all, nil
}
