package lambdaidem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// A fingerprint is a digest of a payload, after a short digest of the settings
// that it was made under and a dot. Two fingerprints with the same digest are of
// the same payload. Two with different digests are of different payloads only if
// they were made under the same settings: see call.compare.

// payload is what a fingerprint is made of, besides the parts that count as they are.
type payload struct {
	body []byte
	json bool   // the body counts by value, if it is JSON that all readers understand alike
	form string // what the text of the body depends on besides its content and the options: see typedPayload
}

// requestCall returns the call that a request makes. Its payload is the method, the
// concrete path, the sorted query, the chosen headers and the body.
func (g *Guard) requestCall(who Identity, r *Request) call {
	p := payload{body: r.Body, json: isJSON(r.contentType())}
	if len(g.counts.headers) > 0 {
		return g.newCall(who, p, g.withHeaders(r)...)
	}
	return g.newCall(who, p, r.Method, r.Path, sortedQuery(r.Query))
}

// newCall returns the call of who with a payload of these parts.
func (g *Guard) newCall(who Identity, p payload, parts ...string) call {
	signers := g.counts.signers
	c := call{who: who, fingerprint: g.fingerprint(&signers[0], p, parts)}
	if len(signers) > 1 {
		parts := slices.Clone(parts) // otherwise the parts of every call would be on the heap
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

// fingerprint returns a payload's fingerprint by one signer.
func (g *Guard) fingerprint(s *signer, p payload, parts []string) string {
	scratch := scratchPool.Get().(*[]byte)
	defer putScratch(scratch)
	*scratch = g.appendCounted((*scratch)[:0], p, parts)
	settings, digest := s.settingsFor(p.form), s.digest(*scratch)
	var out [2*settingsSize + 1 + 2*sha256.Size]byte
	hex.Encode(out[:], settings[:settingsSize])
	out[2*settingsSize] = '.'
	hex.Encode(out[2*settingsSize+1:], digest[:])
	return string(out[:])
}

// settingsSize is how many bytes of the settings' digest a fingerprint has. They
// only tell apart the settings that one record meets in its life.
const settingsSize = 6

// appendCounted appends what counts: the text that a fingerprint is the digest of.
func (g *Guard) appendCounted(buf []byte, p payload, parts []string) []byte {
	for _, part := range parts {
		buf = appendPart(buf, part)
	}
	at := len(buf)
	if p.json {
		taken, byValue := canon.Append(append(buf, 'j'), p.body, canon.Limits{Bytes: g.opts.MaxBody, Depth: g.opts.MaxJSONDepth})
		if byValue {
			return taken[:at+1+len(g.counts.ignore.Cut(taken[at+1:]))]
		}
	}
	return append(append(buf, 'b'), p.body...)
}

// signer makes fingerprints: under a secret, or without one.
type signer struct {
	secret   []byte            // nil: the digest is SHA-256, unsigned
	settings [sha256.Size]byte // digest of the options that fingerprints depend on
}

// settingsFor returns the digest of the settings of a payload of that form.
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

// counted is what the options say of fingerprints, made ready for use.
type counted struct {
	ignore  *canon.Pointers
	headers []string // in lower case, sorted, each once
	signers []signer // the first one signs; fingerprints of the others match too
}

// counted panics if an option is invalid, and names the field.
func (o Options) counted() counted {
	var c counted
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
	for i, secret := range o.FingerprintSecrets { // which no text may show
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

// signer returns the signer of a secret, nil for none, under these options.
func (o Options) signer(secret []byte, headers []string) signer {
	s := signer{secret: secret}
	text := appendPart(nil, "fingerprint settings 1") // raise it whenever the text that counts changes
	if secret == nil {
		text = appendPart(text, "unsigned")
	} else { // an HMAC of a constant names the secret, and is of no more use in guessing it than any fingerprint
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

// minSecret is the minimum length of a secret in bytes. A shorter one could be found by
// trying all secrets of its length.
const minSecret = 16

// Unsigned returns an entry of Options.FingerprintSecrets that stands for fingerprints
// without a secret, which are plain SHA-256. As the first entry it leaves the
// fingerprints of new records unsigned, while those signed with the other entries
// match. As a later entry it makes fingerprints match that were recorded before there
// was a secret.
func Unsigned() []byte { return []byte(unsigned) }

const unsigned = "unsigned" // shorter than any secret

func isUnsigned(secret []byte) bool { return string(secret) == unsigned }

// withHeaders returns the parts of a request's payload with the chosen headers:
// each by its name and the number of its values, so that an absent one is
// not an empty one. White space around a value is not part of it (RFC 9110, 5.5).
func (g *Guard) withHeaders(r *Request) []string {
	parts := []string{r.Method, r.Path, sortedQuery(r.Query)}
	for _, name := range g.counts.headers {
		values := r.Values(http.CanonicalHeaderKey(name))
		parts = append(parts, name, strconv.Itoa(len(values)))
		for _, v := range values {
			parts = append(parts, strings.Trim(v, " \t"))
		}
	}
	return parts
}

var scratchPool = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// putScratch gives a buffer back, unless it grew so far that keeping it would
// be waste.
func putScratch(b *[]byte) {
	if cap(*b) <= 1<<20 {
		scratchPool.Put(b)
	}
}

// isJSON reports whether a body of this media type counts by value: a JSON type
// (RFC 8259, and RFC 6839's +json), or none given. A body of any other type
// counts byte by byte, so that nothing is called equal that its readers tell
// apart.
func isJSON(contentType string) bool {
	if contentType == "" || contentType == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// sortedQuery sorts a raw query by parameter name, whichever way that is
// escaped. The order of the values of one name stays, since it can matter, and
// so does the escaping.
func sortedQuery(raw string) string {
	if !strings.Contains(raw, "&") {
		return raw
	}
	pairs := strings.Split(raw, "&")
	slices.SortStableFunc(pairs, func(a, b string) int { return strings.Compare(parameterName(a), parameterName(b)) })
	return strings.Join(pairs, "&")
}

// parameterName returns the name in one parameter of a raw query, unescaped if it
// can be.
func parameterName(parameter string) string {
	name, _, _ := strings.Cut(parameter, "=")
	if unescaped, err := url.QueryUnescape(name); err == nil {
		return unescaped
	}
	return name
}
