package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// DownstreamKey returns a key for a service that takes an Idempotency-Key itself,
// in a handler's context. name says what is called: "charge" say, or the name of the
// [Step] around the call.
//
// A record and a name have one key, the same in every attempt until the record is
// gone, whatever is deployed in between: rotated secrets, options, fields of a
// type. If an attempt is released and the client corrects its request, the
// corrected payload has a key of its own, and the payload before it keeps the one
// that it had. That takes two payloads that surely differ, compared under the same
// settings. If a deployment changed how payloads are compared (Options of
// fingerprints, the type of a payload), the key stays: a service that honors it
// refuses a changed payload, which is safe, while it would carry out the same
// payload under another key twice.
//
// A call that reads no record, because it failed open (Options.FailOpen) or runs
// optimistically, uses the key of the record's first payload.
//
// It has the form of a UUID of version 8 (RFC 9562: a hash of the application's
// own), since many services take nothing else and none that takes keys takes less
// than these 36 characters. A service that wants a random UUID of version 4 alone
// refuses it.
//
// It is empty where the call runs unguarded: such a call has no record that would
// be the same in a retry.
func DownstreamKey(ctx context.Context, name string) string {
	a := attemptOf(ctx)
	if a == nil {
		return ""
	}
	return downstreamKey(a.id, a.payload, name)
}

// downstreamKey returns the key of a name for one of a record's payloads, 0 for the
// first: a SHA-256 over the parts, each with its length before it, cut to the 122
// bits of such a UUID. It does not depend on the fingerprint, which is another one
// once a secret is rotated, nor on anything random, which a call that reads no
// record would not know.
func downstreamKey(id string, payload int, name string) string {
	var buf []byte
	for _, part := range [...]string{"downstream key", id, strconv.Itoa(payload), name} {
		buf = appendPart(buf, part)
	}
	sum := sha256.Sum256(buf)
	sum[6] = sum[6]&0x0f | 0x80 // version 8
	sum[8] = sum[8]&0x3f | 0x80 // variant
	var out [36]byte
	hex.Encode(out[0:8], sum[0:4])
	hex.Encode(out[9:13], sum[4:6])
	hex.Encode(out[14:18], sum[6:8])
	hex.Encode(out[19:23], sum[8:10])
	hex.Encode(out[24:36], sum[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
