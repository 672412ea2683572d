package lambdaidem

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// RecordID returns the id of the record that i identifies. It is the id that the table and
// the events of an observer contain, and that the function [RecordID] returns in a handler.
func (g *Guard) RecordID(i Identity) string {
	if i.Namespace == "" {
		i.Namespace = g.opts.Namespace
	}
	i.settle()
	return g.idOf(&i)
}

// idOf returns the id of the record that i identifies: idPrefix, then Options.IDPrefix and "#" (only
// if that option is set), then the base64 of a SHA-256 hash over the parts of the identity. The length
// of each part is hashed before the part, so that different identities have different hashes.
//
// Host and tenant come last, each after a label. If they are empty, they are left out. Both were
// added in a later version, and identities without them must keep the ids that they had before.
func (g *Guard) idOf(i *Identity) string {
	var fixed [512]byte
	buf := fixed[:0]
	for _, part := range [...]string{i.kind(), i.Namespace, i.Principal, i.Method, i.resourceInID(), i.Key} {
		buf = appendPart(buf, part)
	}
	if i.Host != "" {
		buf = appendPart(appendPart(buf, "host"), i.Host)
	}
	if i.Tenant != "" {
		buf = appendPart(appendPart(buf, "tenant"), i.Tenant)
	}
	sum := sha256.Sum256(buf)
	buf = append(fixed[:0], idPrefix...)
	if g.opts.IDPrefix != "" {
		buf = append(append(buf, g.opts.IDPrefix...), '#')
	}
	return string(base64.RawURLEncoding.AppendEncode(buf, sum[:]))
}

// idPrefix begins the id of every record, so that the records can share a table with items
// of other tools.
const idPrefix = "lambdaidem#"

// appendPart appends the length of s, in eight bytes, and then s.
func appendPart(buf []byte, s string) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(s)))
	return append(buf, s...)
}
