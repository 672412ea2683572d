package lambdaidem

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// fingerprint is SHA-256 over method, concrete path, sorted query and body, in
// hexadecimal (F3). Each part stands with its length before it, and the body
// with how it was taken, so that no two requests are one text.
func (g *Guard) fingerprint(r *Request) string {
	return g.digest(isJSON(r.contentType()), r.Body, r.Method, r.Path, sortedQuery(r.Query))
}

// digest is the SHA-256 of the parts and of the body, which counts by value if
// it is JSON that no two readers disagree about, and else byte by byte.
func (g *Guard) digest(json bool, body []byte, parts ...string) string {
	scratch := scratchPool.Get().(*[]byte)
	defer putScratch(scratch)
	buf := (*scratch)[:0]
	for _, p := range parts {
		buf = appendPart(buf, p)
	}
	taken, byValue := buf, false
	if json {
		taken, byValue = canon.Append(append(buf, 'j'), body, canon.Limits{Bytes: g.opts.MaxBody, Depth: g.opts.MaxJSONDepth})
	}
	if !byValue {
		taken = append(append(buf, 'b'), body...)
	}
	*scratch = taken
	sum := sha256.Sum256(taken)
	return hex.EncodeToString(sum[:])
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
