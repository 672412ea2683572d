package lambdaidem

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// payload is the body that a fingerprint covers, and how the body is compared. A fingerprint
// also covers other parts of a call, such as the method and the path of a request. Those are
// always compared byte by byte.
type payload struct {
	body []byte
	json bool // compare the body by value if it is JSON that all readers understand in the same way
	// form describes what the payload consists of: "" for a request, a digest of the Go type for a
	// typed payload, and the names of the covered values for a message. A new version of a program
	// may change the form, so two fingerprints with different forms may be those of the same
	// payload.
	form string
}

// requestCall returns the guarded call for a request. The body is compared as a JSON value if the
// Content-Type is JSON or missing. Any other body, such as plain text, is compared byte by byte,
// because its spaces may have a meaning.
func (g *Guard) requestCall(identity Identity, r *Request) call {
	media := r.contentType()
	p := payload{body: r.Body, json: media == "" || isJSON(media)}
	if len(g.fingerprints.headers) > 0 {
		return g.newCall(identity, p, g.withHeaders(r)...)
	}
	return g.newCall(identity, p, r.Method, r.Path, sortedQuery(r.Query))
}

// withHeaders returns the texts that the fingerprint of a request covers besides the body. For each
// header in Options.FingerprintHeaders, these include the name, the number of values and the values.
// The number distinguishes an absent header from an empty one. White space around a value is removed
// (RFC 9110, section 5.5).
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

// payload returns what the fingerprint of m covers: the body, in p, and further texts, as parts.
// These are m.parts and the attributes named in attributeNames, ignoring case. All of these stay
// the same when the source delivers the message again.
func (m *message) payload(attributeNames []string) (p payload, parts []string) {
	isNamed := func(a attribute) bool {
		return slices.ContainsFunc(attributeNames, func(name string) bool { return strings.EqualFold(name, a.name) })
	}
	var counted []attribute
	for _, a := range m.attrs {
		if isNamed(a) {
			counted = append(counted, a)
		}
	}
	// Sort the attributes by name, because a map yields them in random order. The sort is stable:
	// if an SQS message and the SNS envelope in its body have an attribute of the same name, that
	// of the SQS message stays first.
	slices.SortStableFunc(counted, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	parts = slices.Clone(m.parts)
	for _, a := range counted {
		parts = append(parts, a.name, a.dataType, a.value)
	}
	// form is a description of what the fingerprint covers; see payload.form. The form differs if
	// another version of the program covers other attributes, or if the message takes another
	// route, such as SNS with raw message delivery.
	var form []byte
	for _, part := range m.form {
		form = appendPart(form, part)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(attributeNames))) {
		form = appendPart(form, strings.ToLower(name))
	}
	return payload{body: m.body, json: true, form: string(form)}, parts
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
