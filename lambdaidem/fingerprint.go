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

// A fingerprint is a short digest of the settings under which it was made, a dot, and a
// digest of the payload. Fingerprints with equal payload digests belong to equal payloads.
// Different payload digests prove different payloads only if the settings are equal; see
// call.comparePayload.

// payload is the body that a fingerprint covers, and how the body is compared. A fingerprint
// also covers other parts of a call, such as the method and the path of a request. Those are
// always compared byte by byte.
type payload struct {
	body []byte
	json bool // compare the body by value if it is JSON that all readers understand in the same way
	// form describes what the payload consists of. It is "" for a request. For a typed payload,
	// form is a digest of the Go type; see typedPayload. For a message, form has the names of the
	// values that the fingerprint covers; see message.payload.
	//
	// A new version of a program may change the form, and with it the fingerprint of the same
	// payload. The form is therefore part of the fingerprint's settings: if two fingerprints with
	// different forms differ, the guard does not conclude that their payloads differ.
	form string
}

// requestCall returns the guarded call for a request. Its payload is the method, the
// concrete path, the sorted query, the headers in Options.FingerprintHeaders, and the body.
//
// The body is compared as a JSON value if the Content-Type is JSON or missing. A body of any
// other type, such as plain text, is compared byte by byte: its spaces, for example, may have a
// meaning that they don't have in JSON.
func (g *Guard) requestCall(who Identity, r *Request) call {
	media := r.contentType()
	p := payload{body: r.Body, json: media == "" || isJSON(media)}
	if len(g.fingerprints.headers) > 0 {
		return g.newCall(who, p, g.withHeaders(r)...)
	}
	return g.newCall(who, p, r.Method, r.Path, sortedQuery(r.Query))
}

// newCall returns a guarded call. who identifies the call's record. The call's fingerprint covers
// the body in p and the values in parts, such as the method and the path of a request.
func (g *Guard) newCall(who Identity, p payload, parts ...string) call {
	signers := g.fingerprints.signers
	c := call{who: who, id: g.idOf(&who), fingerprint: g.fingerprint(&signers[0], p, parts)}
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

// appendFingerprinted appends the text that a fingerprint is a digest of: first parts, then the
// body in p. A body that is compared as JSON is appended in canonical form, without the values
// that Options.FingerprintIgnore excludes.
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

// signer makes fingerprints with one secret, or without a secret.
type signer struct {
	secret   []byte            // key of the HMAC; nil if the digest is a plain SHA-256
	settings [sha256.Size]byte // digest of the options that fingerprints depend on
}

// settingsFor returns a digest of the settings of a fingerprint. The settings are the options that
// change how fingerprints are made, and form, which describes what the payload consists of.
//
// Each fingerprint contains a part of this digest, because two fingerprints can differ for two
// reasons. If their settings are equal, their payloads differ. If their settings differ, their
// payloads may still be equal.
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

// fingerprintOptions holds the options for fingerprints, prepared for use.
type fingerprintOptions struct {
	ignore  *canon.Pointers // the JSON Pointers of Options.FingerprintIgnore; nil if there are none
	headers []string        // the names in Options.FingerprintHeaders: lower case, sorted, without duplicates
	signers []signer        // one for each secret, or one without a secret; new records use the first, and existing records may match any
}

// fingerprintOptions prepares the options for fingerprints. It panics if one is invalid,
// and names the field.
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

// withHeaders returns what the fingerprint of a request covers besides the body: the method, the
// path, the sorted query, and the headers in Options.FingerprintHeaders. For each header, it
// returns the name, the number of values and the values. The number distinguishes an absent header
// from an empty one. White space around a value is removed (RFC 9110, section 5.5).
func (g *Guard) withHeaders(r *Request) []string {
	parts := []string{r.Method, r.Path, sortedQuery(r.Query)}
	for _, name := range g.fingerprints.headers {
		values := r.Values(http.CanonicalHeaderKey(name))
		parts = append(parts, name, strconv.Itoa(len(values)))
		for _, v := range values {
			parts = append(parts, strings.Trim(v, " \t"))
		}
	}
	return parts
}

var scratchPool = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// putScratch returns a buffer to the pool, unless it has grown too large to keep.
func putScratch(b *[]byte) {
	if cap(*b) <= 1<<20 {
		scratchPool.Put(b)
	}
}

// isJSON reports whether a Content-Type is that of JSON: application/json (RFC 8259) or a
// type with the suffix +json (RFC 6839).
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// sortedQuery sorts the parameters of a raw query by their unescaped names. It keeps the
// order of the values of one name, because that order can matter, and it keeps the
// escaping.
func sortedQuery(raw string) string {
	if !strings.Contains(raw, "&") {
		return raw
	}
	pairs := strings.Split(raw, "&")
	slices.SortStableFunc(pairs, func(a, b string) int { return strings.Compare(parameterName(a), parameterName(b)) })
	return strings.Join(pairs, "&")
}

// parameterName returns the unescaped name of one parameter of a raw query. If the name
// has an invalid escape, parameterName returns it as it is.
func parameterName(parameter string) string {
	name, _, _ := strings.Cut(parameter, "=")
	if unescaped, err := url.QueryUnescape(name); err == nil {
		return unescaped
	}
	return name
}
