package lambdaidem

import (
	"crypto/sha256"
	"encoding/hex"
)

// keyLabel returns Event.Key: the first 12 hex digits of the key's SHA-256, or the key itself
// with Options.ShowKeys.
func (g *Guard) keyLabel(key string) string {
	if g.opts.ShowKeys || key == "" {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// TokenHash returns the first 32 hex digits of the SHA-256 of a fencing token. Log the hash
// and not the token, because anyone who has the token can change the record.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:len(sum)/2])
}
