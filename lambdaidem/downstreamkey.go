package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// DownstreamKey returns an idempotency key for a request to another service that accepts such keys.
// ctx is the context of a guarded handler. name identifies the request within the handler:
// "charge", for example, or the name of the [Step] around the request. DownstreamKey returns "" if
// the call runs unguarded, because there is no record that a retry would share.
//
// The key depends only on name and on the id of the record. It is therefore the same in every
// attempt, even after a deployment that changes secrets, fingerprint options or types. It is also
// the same if the guard has not read the record (Options.FailOpen, Options.Optimistic).
//
// Calling DownstreamKey binds the record to its payload: a request with another payload is refused
// with [ErrPayloadMismatch] even after a release, and needs a new idempotency key. The other
// service may have carried out the first payload already.
//
// If a deployment changes how payloads are compared, the guard can't tell whether a retry has the
// same payload. The handler then runs, and gets the same downstream key. A service that honors the
// key refuses the request if its payload did change.
//
// The key is a UUID of version 8 (RFC 9562). A service that accepts only random UUIDs (version 4)
// refuses it.
//
// DownstreamKey panics if the handler has returned without success, because the guard may have
// released the record by then. A handler must therefore wait for its goroutines before it returns.
func DownstreamKey(ctx context.Context, name string) string {
	a := attemptOf(ctx)
	if a == nil {
		return ""
	}
	a.askedForKey.Store(true) // set before the check: a release that runs after the handler has failed must see it
	if a.inner.handlerHasFailed() {
		panic("lambdaidem: DownstreamKey was called after the handler had returned without success; the handler must wait for its goroutines")
	}
	for each := a.outer; each != nil; each = each.outer {
		each.inner.setEffect() // this record's id, and so the downstream key, may depend on the payload of the outer call
	}
	return downstreamKey(a.id, name)
}

// downstreamKey returns the downstream key for a record id and a name: a hash in the form of a
// version 8 UUID. Every attempt must get the same key. The hash therefore does not cover the
// fingerprint, which changes when a secret is rotated.
func downstreamKey(id, name string) string {
	var buf []byte
	// The part "0" has no meaning, but must stay: without it, the keys of all existing records
	// would change.
	for _, part := range [...]string{"downstream key", id, "0", name} {
		buf = appendPart(buf, part)
	}
	sum := sha256.Sum256(buf)
	sum[6] = sum[6]&0x0f | 0x80 // version 8
	sum[8] = sum[8]&0x3f | 0x80 // the variant that RFC 9562 defines
	var out [36]byte
	hex.Encode(out[0:8], sum[0:4])
	hex.Encode(out[9:13], sum[4:6])
	hex.Encode(out[14:18], sum[6:8])
	hex.Encode(out[19:23], sum[8:10])
	hex.Encode(out[24:36], sum[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
