package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// DownstreamKey returns a key for a service that takes an Idempotency-Key itself,
// in a handler's context. name says what is called: "charge" say, or the name of the
// [Step] around the call.
//
// A record and a name have one key, the same in every attempt until the record is
// gone, whatever is deployed in between: rotated secrets, options, fields of a type.
// A call that reads no record, because it failed open (Options.FailOpen) or runs
// optimistically, has the same key.
//
// Calling DownstreamKey binds the record to its payload. Otherwise a client that
// corrects its request after a release would have two payloads carried out, or would
// be told that the second one was, since the service may have carried out the first.
// A request with another payload is refused with [ErrPayloadMismatch], also after a
// release; it needs a new idempotency key. If a deployment changed how payloads are
// compared (Options of fingerprints, the type of a payload), a different payload can't
// be told from the same one. It then runs, under the same key, and a service that
// honors the key refuses a payload that did change.
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
	a.keyed.Store(true)
	for around := a.outer; around != nil; around = around.outer {
		around.inner.setEffect() // the key of this record may depend on the payload of that one
	}
	return downstreamKey(a.id, name)
}

// downstreamKey returns the key of a name for a record: a SHA-256 over the parts, each
// with its length before it, cut to the 122 bits of such a UUID. It does not depend on
// the fingerprint, which is another one once a secret is rotated, nor on anything random,
// which a call that reads no record would not know. The third part is constant, so that
// keys stay what they are.
func downstreamKey(id, name string) string {
	var buf []byte
	for _, part := range [...]string{"downstream key", id, "0", name} {
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
