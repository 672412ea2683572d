package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// DownstreamKey returns an idempotency key for a request to another service that accepts
// such keys. ctx is the context of a guarded handler. name identifies the request within
// the handler: "charge", for example, or the name of the [Step] around the request.
//
// The key depends only on name and on the id of the record. It is therefore the same in every
// attempt, even if a deployment between two attempts rotates secrets or changes the fingerprint
// options or a type. With Options.FailOpen or Options.Optimistic, the handler may run although the
// guard has not read the record. The key is the same then too.
//
// Calling DownstreamKey binds the record to its payload: a request with another payload is refused
// with [ErrPayloadMismatch] even after a release, and needs a new idempotency key. Without this
// rule, a client could correct its request after a release, although the other service may have
// carried out the first payload already.
//
// A deployment may change how payloads are compared (the fingerprint options, or the type of a
// payload). The guard then can't tell whether the payload of a retry is another one. The handler
// runs, and gets the same downstream key. A service that honors the key refuses the request if its
// payload did change.
//
// The key has the form of a UUID of version 8 (RFC 9562), which is for custom formats such as a
// hash. Every service that accepts keys accepts these 36 characters, except a service that accepts
// only random UUIDs, of version 4.
//
// DownstreamKey returns "" if the call runs unguarded, because there is no record that a retry
// would share.
//
// DownstreamKey panics if the handler has returned without success: the guard may have released the
// record by then, so that it is too late to bind the record to its payload. A handler must
// therefore wait for its goroutines before it returns.
func DownstreamKey(ctx context.Context, name string) string {
	a := attemptOf(ctx)
	if a == nil {
		return ""
	}
	a.askedForKey.Store(true) // set before the check: a release that runs after the handler has failed must see it
	if a.inner.handlerHasFailed() {
		panic("lambdaidem: DownstreamKey was called after the handler had returned without success; the handler must wait for its goroutines")
	}
	for around := a.outer; around != nil; around = around.outer {
		around.inner.setEffect() // this record's id, and so the downstream key, may depend on the payload of the outer call
	}
	return downstreamKey(a.id, name)
}

// downstreamKey returns the downstream key for a record id and a name. The key is the SHA-256 of
// four parts: the text "downstream key", the record id, the text "0", and the name. Each part is
// preceded by its length. The hash is cut to the 122 free bits of a version 8 UUID.
//
// Every attempt must get the same key. So the fingerprint is not one of the parts, because it
// changes when a secret is rotated. A random value would not work either: the record would have to
// store the value, and some handlers run although the guard has not read the record. The part "0"
// has no meaning, but must stay: without it, the keys of all existing records would change.
func downstreamKey(id, name string) string {
	var buf []byte
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
