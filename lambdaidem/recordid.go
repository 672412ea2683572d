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
	i.chooseRouteOrPath()
	return g.idOf(&i)
}

// idOf returns the id of the record that i identifies. The id is idPrefix, then Options.IDPrefix
// and "#" if that option is set, then a SHA-256 hash of the identity in base64. The length of each
// part is hashed before the part, so that different identities have different hashes.
func (g *Guard) idOf(i *Identity) string {
	var fixed [512]byte
	buf := fixed[:0]
	for _, part := range [...]string{i.kind(), i.Namespace, i.Principal, i.Method, i.resourceInID(), i.Key} {
		buf = appendPart(buf, part)
	}
	// The host and the tenant were added in a later version. An identity without them must keep its
	// earlier id.
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
