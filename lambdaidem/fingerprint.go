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

// requestCall is the call that a request makes. Its fingerprint is SHA-256 over
// method, concrete path, sorted query, the headers that were chosen and body, in
// hexadecimal (F3, F4). Each part stands with its length before it, and the body
// with how it was taken, so that no two requests are one text.
func (g *Guard) requestCall(who Identity, r *Request) call {
	json := isJSON(r.contentType())
	if len(g.counts.headers) > 0 {
		return g.newCall(who, json, r.Body, g.withHeaders(r)...)
	}
	return g.newCall(who, json, r.Body, r.Method, r.Path, sortedQuery(r.Query))
}

// newCall is a call of who whose payload is the parts and the body (F3, F5).
func (g *Guard) newCall(who Identity, json bool, body []byte, parts ...string) call {
	c := call{who: who, fingerprint: g.digest(json, body, parts...)}
	if g.rotates() {
		parts := slices.Clone(parts) // without it each call's parts would be on the heap
		c.older = sync.OnceValue(func() []string { return g.olderDigests(json, body, parts) })
	}
	return c
}

// digest is the fingerprint of the parts and of the body, which counts by value
// if it is JSON that no two readers disagree about, but for what is left out of it
// (F4), and else byte by byte. It is what a new record gets; see newCall for what
// matches.
func (g *Guard) digest(json bool, body []byte, parts ...string) string {
	scratch := scratchPool.Get().(*[]byte)
	defer putScratch(scratch)
	*scratch = g.appendCounted((*scratch)[:0], json, body, parts)
	if len(g.opts.FingerprintSecrets) > 0 {
		return signed(g.opts.FingerprintSecrets[0], *scratch)
	}
	return unsigned(*scratch)
}

// rotates tells whether other fingerprints than the call's own match (F4).
func (g *Guard) rotates() bool {
	return len(g.opts.FingerprintSecrets) > 1 || len(g.opts.FingerprintSecrets) > 0 && g.opts.FingerprintUnsigned
}

// olderDigests are the fingerprints under every secret but the first, and without
// one if that is allowed: those that a record may have which was begun before the
// secret was changed.
func (g *Guard) olderDigests(json bool, body []byte, parts []string) []string {
	scratch := scratchPool.Get().(*[]byte)
	defer putScratch(scratch)
	*scratch = g.appendCounted((*scratch)[:0], json, body, parts)
	var all []string
	for _, secret := range g.opts.FingerprintSecrets[1:] {
		all = append(all, signed(secret, *scratch))
	}
	if g.opts.FingerprintUnsigned {
		all = append(all, unsigned(*scratch))
	}
	return all
}

// appendCounted appends what counts: the text that a fingerprint is the hash of.
func (g *Guard) appendCounted(buf []byte, json bool, body []byte, parts []string) []byte {
	for _, p := range parts {
		buf = appendPart(buf, p)
	}
	at := len(buf)
	if json {
		taken, byValue := canon.Append(append(buf, 'j'), body, canon.Limits{Bytes: g.opts.MaxBody, Depth: g.opts.MaxJSONDepth})
		if byValue {
			return taken[:at+1+len(g.counts.ignore.Cut(taken[at+1:]))]
		}
	}
	return append(append(buf, 'b'), body...)
}

func unsigned(text []byte) string {
	sum := sha256.Sum256(text)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

func signed(secret, text []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// counted is what the options say of fingerprints, made ready for use (F4).
type counted struct {
	ignore  *canon.Pointers
	headers []string // in lower case, sorted, each once
}

// counted panics on what is invalid, and names the field.
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
		if len(secret) < minSecret {
			panic(fmt.Sprintf("lambdaidem: Options.FingerprintSecrets[%d] has %d bytes; it must have at least %d", i, len(secret), minSecret))
		}
	}
	return c
}

// minSecret is the least length of a secret in bytes: one that can be searched
// protects nothing.
const minSecret = 16

// withHeaders is the parts of a request's fingerprint with the headers that were
// chosen: each by its name and the number of its values, so that an absent one is
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

// isJSON tells whether a body of this media type counts by value: a JSON type
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

// parameterName is the name in one parameter of a raw query, unescaped if it
// can be.
func parameterName(parameter string) string {
	name, _, _ := strings.Cut(parameter, "=")
	if unescaped, err := url.QueryUnescape(name); err == nil {
		return unescaped
	}
	return name
}
