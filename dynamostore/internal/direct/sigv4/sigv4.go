// Package sigv4 signs requests with AWS Signature Version 4 (IAM User Guide, "Create a signed AWS
// API request"). The caller builds the canonical request.
//
// The signature is the same as that of a new SDK signer. An SDK signer that has been used can make
// other signatures, because it caches the signing key of an access key id for a day: if the id gets
// a new secret on that day, the SDK signer still uses the old one.
//
// The SDK's signer builds the canonical request from the header of an http.Request for each
// signature. That takes longer than everything else that dynamostore does to build a request.
// Before dynamostore uses this package, it compares the signatures of this package with those of
// the SDK's signer.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	final     = "aws4_request"

	// TimeFormat is the format of a request's date, in UTC.
	TimeFormat = "20060102T150405Z"
	dayLength  = len("20060102")
)

// Scope is the Region and the service for which a signature is valid. The credential scope
// also has the day, which is taken from the request's date.
type Scope struct{ Region, Service string }

// AppendDate appends a time in the format [TimeFormat]. The year must have four digits.
func AppendDate(b []byte, at time.Time) []byte {
	at = at.UTC()
	year, month, day := at.Date()
	hour, minute, second := at.Clock()
	b = appendTwo(appendTwo(b, year/100), year%100)
	b = append(appendTwo(appendTwo(b, int(month)), day), 'T')
	return append(appendTwo(appendTwo(appendTwo(b, hour), minute), second), 'Z')
}

func appendTwo(b []byte, n int) []byte {
	const digits = "0123456789"
	return append(b, digits[n/10], digits[n%10])
}

// Signer makes signatures. The zero value is ready to use, and may be used concurrently. A
// Signer caches the signing key for the last credentials, day and scope, because deriving
// a key takes as long as four signatures.
type Signer struct{ last atomic.Pointer[key] }

// Authorization returns the value of the header field Authorization. scope is the Region and the
// service for which the signature is valid. date is the date of the request in [TimeFormat].
// signedHeaders lists the names of the header fields in canonicalRequest, in the same order and
// separated by semicolons.
func (s *Signer) Authorization(creds *aws.Credentials, scope Scope, date, signedHeaders string, canonicalRequest []byte) string {
	k := s.last.Load()
	if k == nil || !k.is(creds, scope, date) {
		k = newKey(creds, scope, date)
		s.last.Store(k)
	}
	m, _ := k.macs.Get().(*mac)
	defer k.macs.Put(m)

	// The string to sign.
	sum := sha256.Sum256(canonicalRequest)
	b := append(m.text[:0], algorithm+"\n"...)
	b = append(append(b, date...), '\n')
	b = append(append(b, k.scopeText...), '\n')
	b = hex.AppendEncode(b, sum[:])
	m.hash.Reset()
	_, _ = m.hash.Write(b) // never fails
	m.sum = m.hash.Sum(m.sum[:0])

	b = append(b[:0], algorithm+" Credential="...)
	b = append(append(append(b, k.id...), '/'), k.scopeText...)
	b = append(append(b, ", SignedHeaders="...), signedHeaders...)
	b = hex.AppendEncode(append(b, ", Signature="...), m.sum)
	m.text = b
	return string(b)
}

// key is a signing key, with the credentials, day and scope that it was derived from.
type key struct {
	id, secret, day string
	scope           Scope
	scopeText       string    // the credential scope, such as "20150830/eu-west-1/dynamodb/aws4_request"
	macs            sync.Pool // of *mac, keyed with the signing key
}

// mac is an HMAC with a signing key, and buffers that are reused for each signature.
type mac struct {
	hash hash.Hash
	text []byte
	sum  []byte
}

func (k *key) is(creds *aws.Credentials, scope Scope, date string) bool {
	return k.id == creds.AccessKeyID && k.secret == creds.SecretAccessKey && k.day == date[:dayLength] && k.scope == scope
}

func newKey(creds *aws.Credentials, scope Scope, date string) *key {
	k := &key{id: creds.AccessKeyID, secret: creds.SecretAccessKey, day: date[:dayLength], scope: scope}
	k.scopeText = k.day + "/" + scope.Region + "/" + scope.Service + "/" + final
	derived := []byte("AWS4" + k.secret)
	for _, part := range []string{k.day, scope.Region, scope.Service, final} {
		h := hmac.New(sha256.New, derived)
		_, _ = h.Write([]byte(part)) // never fails
		derived = h.Sum(nil)
	}
	k.macs.New = func() any { return &mac{hash: hmac.New(sha256.New, derived)} }
	return k
}
