// Package sigv4 signs requests that have their body in memory, by AWS Signature
// Version 4 (IAM User Guide, "Create a signed AWS API request"). It gives what a new
// signer of the SDK's gives, for a canonical request that its caller has written
// already. (One that has signed before goes on with the secret that it met first
// under an access key id, until the next day.)
//
// The SDK's signer reads the canonical request off an http.Request, header by
// header, each time anew: it takes longer than all else that dynamostore does to
// make a request. Whether both sign alike, dynamostore asks before it uses this one.
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

	// TimeFormat is how a request is dated, in UTC: see [AppendDate].
	TimeFormat = "20060102T150405Z"
	dayLength  = len("20060102")
)

// Scope is what a signature holds for, besides its day.
type Scope struct{ Region, Service string }

// AppendDate writes a time of a year of four digits by [TimeFormat].
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

// Signer makes signatures. The zero Signer is ready. It keeps the key of the
// credentials, the day and the scope that it signed for last: making one takes as
// long as four signatures.
type Signer struct{ last atomic.Pointer[key] }

// Authorization returns the value of the header field of that name. The date is that of
// the request, by [TimeFormat]. Signed are the names of the header fields that the
// canonical request has, in its order, with semicolons between them.
func (s *Signer) Authorization(creds *aws.Credentials, of Scope, date, signed string, canonical []byte) string {
	k := s.last.Load()
	if k == nil || !k.is(creds, of, date) {
		k = newKey(creds, of, date)
		s.last.Store(k)
	}
	m, _ := k.macs.Get().(*mac)
	defer k.macs.Put(m)

	// The string to sign.
	sum := sha256.Sum256(canonical)
	b := append(m.text[:0], algorithm+"\n"...)
	b = append(append(b, date...), '\n')
	b = append(append(b, k.scope...), '\n')
	b = hex.AppendEncode(b, sum[:])
	m.hash.Reset()
	_, _ = m.hash.Write(b) // a hash's never fails
	m.sum = m.hash.Sum(m.sum[:0])

	b = append(b[:0], algorithm+" Credential="...)
	b = append(append(append(b, k.id...), '/'), k.scope...)
	b = append(append(b, ", SignedHeaders="...), signed...)
	b = hex.AppendEncode(append(b, ", Signature="...), m.sum)
	m.text = b
	return string(b)
}

// key is a signing key, and what it was made for.
type key struct {
	id, secret, day string
	of              Scope
	scope           string // of the credential
	macs            sync.Pool
}

// mac is an HMAC by the key, and room to work in.
type mac struct {
	hash hash.Hash
	text []byte
	sum  []byte
}

func (k *key) is(creds *aws.Credentials, of Scope, date string) bool {
	return k.id == creds.AccessKeyID && k.secret == creds.SecretAccessKey && k.day == date[:dayLength] && k.of == of
}

func newKey(creds *aws.Credentials, of Scope, date string) *key {
	k := &key{id: creds.AccessKeyID, secret: creds.SecretAccessKey, day: date[:dayLength], of: of}
	k.scope = k.day + "/" + of.Region + "/" + of.Service + "/" + final
	derived := []byte("AWS4" + k.secret)
	for _, part := range []string{k.day, of.Region, of.Service, final} {
		h := hmac.New(sha256.New, derived)
		_, _ = h.Write([]byte(part)) // a hash's never fails
		derived = h.Sum(nil)
	}
	k.macs.New = func() any { return &mac{hash: hmac.New(sha256.New, derived)} }
	return k
}
