package lambdaidem

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// fingerprintOptions holds the options for fingerprints, converted to the form that the guard uses.
type fingerprintOptions struct {
	ignore  *canon.Pointers // the JSON Pointers of Options.FingerprintIgnore; nil if there are none
	headers []string        // the names in Options.FingerprintHeaders: lower case, sorted, without duplicates
	signers []signer        // one for each secret, or one without a secret; new records use the first, and existing records may match any
}

// fingerprintOptions returns the options for fingerprints, checked and converted to the form that
// the guard uses. It panics if one of these options is invalid. The panic's text names the option.
func (o Options) fingerprintOptions() fingerprintOptions {
	var c fingerprintOptions
	if len(o.FingerprintIgnore) > 0 {
		var err error
		if c.ignore, err = canon.ParsePointers(o.FingerprintIgnore); err != nil {
			panic(fmt.Sprintf("lambdaidem: Options.FingerprintIgnore: %v; it must have JSON Pointers (RFC 6901) to parts of a body", err))
		}
	}
	for _, name := range o.FingerprintHeaders {
		if !validHeaderName(name) {
			panic(fmt.Sprintf("lambdaidem: Options.FingerprintHeaders has %q; it must have names of headers", name))
		}
		c.headers = append(c.headers, strings.ToLower(name))
	}
	slices.Sort(c.headers)
	c.headers = slices.Compact(c.headers)
	for i, secret := range o.FingerprintSecrets { // no error text may show a secret
		if isUnsigned(secret) {
			c.signers = append(c.signers, o.signer(nil, c.headers))
			continue
		}
		if len(secret) < minSecret {
			panic(fmt.Sprintf("lambdaidem: Options.FingerprintSecrets[%d] has %d bytes; it must have at least %d", i, len(secret), minSecret))
		}
		c.signers = append(c.signers, o.signer(secret, c.headers))
	}
	if len(c.signers) == 0 {
		c.signers = []signer{o.signer(nil, c.headers)}
	}
	return c
}

// signer makes fingerprints with one secret, or without a secret.
type signer struct {
	secret   []byte            // key of the HMAC; nil if the digest is a plain SHA-256
	settings [sha256.Size]byte // digest of the options that fingerprints depend on
}

// signer returns the signer for a secret. If secret is nil, the signer makes fingerprints without
// a secret. headers has the names of the request headers that fingerprints cover.
func (o Options) signer(secret []byte, headers []string) signer {
	s := signer{secret: secret}
	text := appendPart(nil, "fingerprint settings 1") // increase the number whenever appendFingerprinted changes
	if secret == nil {
		text = appendPart(text, "unsigned")
	} else { // identify the secret by the HMAC of a constant, which reveals no more about it than any fingerprint does
		name := s.digest([]byte("fingerprint secret"))
		text = appendPart(text, string(name[:]))
	}
	ignored := slices.Compact(slices.Sorted(slices.Values(o.FingerprintIgnore)))
	for _, list := range [][]string{ignored, headers, {strconv.Itoa(o.MaxBody), strconv.Itoa(o.MaxJSONDepth)}} {
		text = appendPart(text, strconv.Itoa(len(list)))
		for _, part := range list {
			text = appendPart(text, part)
		}
	}
	s.settings = sha256.Sum256(text)
	return s
}

// settingsFor returns a digest of what a fingerprint depends on besides the payload: the options
// and the parameter form, a description of the payload's parts. Each fingerprint begins with a part
// of this digest. Fingerprints that begin differently can't prove that their payloads differ.
func (s *signer) settingsFor(form string) [sha256.Size]byte {
	if form == "" {
		return s.settings
	}
	return sha256.Sum256(appendPart(append([]byte{}, s.settings[:]...), form))
}

func (s *signer) digest(text []byte) [sha256.Size]byte {
	if s.secret == nil {
		return sha256.Sum256(text)
	}
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(text)
	return [sha256.Size]byte(mac.Sum(nil))
}

// minSecret is the minimum length of a secret in bytes. Someone who can read the table could
// find a short secret by trying all secrets of its length.
const minSecret = 16

// Unsigned returns an entry for Options.FingerprintSecrets that stands for "no secret": a
// fingerprint made with it is a plain SHA-256.
//
// To stop using a secret, put Unsigned before the secret. The guard then makes new fingerprints
// without a secret, and records that were signed with the secret still match. To begin to use a
// secret, put Unsigned after the secret. The guard then signs new fingerprints with the secret,
// and records that were stored without one still match.
func Unsigned() []byte { return []byte(unsigned) }

const unsigned = "unsigned" // shorter than minSecret, so that it can't be a secret

func isUnsigned(secret []byte) bool { return string(secret) == unsigned }
