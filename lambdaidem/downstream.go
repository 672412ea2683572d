package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// DownstreamKey is a key for a service that takes an Idempotency-Key itself, in a
// handler's context (E6). It is made of the record, of the payload that the record
// was begun with and of name, which says what is called: "charge" say, or the name
// of the [Step] around the call. It is the same in every attempt at the record, and
// another one for every other record, payload and name.
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
	return downstreamKey(a.id, a.fingerprint, name)
}

// downstreamKey is a SHA-256 over the parts, each with its length before it, cut
// to the 122 bits that such a UUID has.
func downstreamKey(id, fingerprint, name string) string {
	var buf []byte
	for _, part := range [...]string{"downstream key", id, fingerprint, name} {
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
