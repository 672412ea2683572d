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

// payload returns what the fingerprint of m covers: in p the body, and in parts the values in
// m.parts and the name, type and value of some attributes of m. These are the attributes whose
// names are in attributeNames, ignoring case. Body and parts stay the same when the source delivers
// the message again.
//
// p.form has the names of the covered values. The same message can have another form, and so
// another fingerprint. This happens if a new version of the program covers other attributes, or if
// the message comes by another path, such as through SNS with raw message delivery. So if two
// fingerprints have different forms, a difference between them does not prove that the messages are
// different.
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
	// Sort the attributes by name, because a map yields them in random order. The sort must be
	// stable: if an SQS message and the SNS envelope in its body have an attribute with the same
	// name, the attribute of the SQS message must stay first.
	slices.SortStableFunc(counted, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	parts = slices.Clone(m.parts)
	for _, a := range counted {
		parts = append(parts, a.name, a.dataType, a.value)
	}
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
