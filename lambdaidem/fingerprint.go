package lambdaidem

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// A fingerprint is a short digest of the settings under which it was made, a dot, and a
// digest of the payload. Fingerprints with equal payload digests belong to equal payloads.
// Different payload digests prove different payloads only if the settings are equal; see
// call.comparePayload.

// newCall returns a guarded call whose record has the given identity. The call's fingerprint covers
// the body in p and the values in parts, such as the method and the path of a request.
func (g *Guard) newCall(identity Identity, p payload, parts ...string) call {
	signers := g.fingerprints.signers
	c := call{identity: identity, id: g.idOf(&identity), fingerprint: g.fingerprint(&signers[0], p, parts)}
	if len(signers) > 1 {
		parts := slices.Clone(parts) // without the copy, the parts of every call would escape to the heap
		c.others = sync.OnceValue(func() []string {
			var all []string
			for i := range signers[1:] {
				all = append(all, g.fingerprint(&signers[1+i], p, parts))
			}
			return all
		})
	}
	return c
}

// fingerprint returns the fingerprint of a call, made by the signer s. The fingerprint covers the
// body in p and the values in parts, such as the method and the path of a request.
func (g *Guard) fingerprint(s *signer, p payload, parts []string) string {
	scratch := scratchPool.Get().(*[]byte)
	defer putScratch(scratch)
	*scratch = g.appendFingerprinted((*scratch)[:0], p, parts)
	settings, digest := s.settingsFor(p.form), s.digest(*scratch)
	var out [2*settingsSize + 1 + 2*sha256.Size]byte
	hex.Encode(out[:], settings[:settingsSize])
	out[2*settingsSize] = '.'
	hex.Encode(out[2*settingsSize+1:], digest[:])
	return string(out[:])
}

// settingsSize is how many bytes of the settings' digest a fingerprint contains. Six bytes are
// enough to tell the settings apart: while a record exists, a guard uses only a few different
// settings.
const settingsSize = 6

// appendFingerprinted appends the input of a fingerprint's digest to buf: each of the strings in
// parts, with its length, and the body in p. A body that is compared as JSON is appended in
// canonical form, without the values that Options.FingerprintIgnore excludes.
func (g *Guard) appendFingerprinted(buf []byte, p payload, parts []string) []byte {
	for _, part := range parts {
		buf = appendPart(buf, part)
	}
	at := len(buf)
	if p.json {
		taken, byValue := canon.Append(append(buf, 'j'), p.body, canon.Limits{Bytes: g.opts.MaxBody, Depth: g.opts.MaxJSONDepth})
		if byValue {
			return taken[:at+1+len(g.fingerprints.ignore.Cut(taken[at+1:]))]
		}
	}
	return append(append(buf, 'b'), p.body...)
}

var scratchPool = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// putScratch returns a buffer to the pool, unless it has grown too large to keep.
func putScratch(b *[]byte) {
	if cap(*b) <= 1<<20 {
		scratchPool.Put(b)
	}
}
