package lambdaidem

import (
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"
)

// This file writes the JSON of a stored response, which every new request waits for. The
// result is what encoding/json writes without HTML escapes, in a fifth of the time.
// TestR1_AnswersAreWrittenAsEncodingJSONDoes and FuzzAnswer compare the two.

// appendTo appends the response to buf as the JSON of a storedAnswer.
func (r *Response) appendTo(buf []byte) []byte {
	text, inBytes := appendText, !r.isText()
	if inBytes {
		text = appendBytes
	}
	texts := func(buf []byte, all []string) []byte {
		if all == nil && !inBytes {
			return append(buf, "null"...)
		}
		return appendTexts(buf, all, text)
	}
	buf = strconv.AppendInt(append(buf, `{"statusCode":`...), int64(r.Status), 10)
	if r.reason != "" {
		buf = text(append(buf, `,"statusDescription":`...), r.reason)
	}
	isOne := func(values []string) bool { return len(values) == 1 }
	buf = appendMap(buf, `,"headers":`, r.Header, isOne, func(buf []byte, values []string) []byte { return text(buf, values[0]) })
	buf = appendMap(buf, `,"multiValueHeaders":`, r.Header, func(values []string) bool { return !isOne(values) }, texts)
	buf = appendMember(buf, `,"cookies":`, r.Cookies, text)
	buf = text(append(buf, `,"body":`...), r.Body)
	if r.Base64 {
		buf = append(buf, `,"isBase64Encoded":true`...)
	}
	buf = appendMap(buf, `,"beside":`, r.fromHeaders, func(string) bool { return true }, text)
	buf = appendMember(buf, `,"added":`, r.added, appendText)
	buf = appendMember(buf, `,"removed":`, r.removed, appendText)
	buf = appendMap(buf, `,"trailers":`, r.trailer, func([]string) bool { return true }, texts)
	if inBytes {
		buf = append(buf, `,"bytes":true`...)
	}
	return append(buf, '}')
}

// appendMap appends one member to an unfinished JSON object in buf: first prefix, such as
// `,"headers":`, and then an object. The object has those entries of m whose values satisfy isKept,
// sorted by name. If there are none, appendMap appends nothing. It calls appendValue to append each
// value.
func appendMap[V any](buf []byte, prefix string, m map[string]V, isKept func(V) bool, appendValue func([]byte, V) []byte) []byte {
	var room [16]string
	names := room[:0]
	for name, v := range m {
		if isKept(v) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return buf
	}
	slices.Sort(names)
	buf = append(append(buf, prefix...), '{')
	for i, name := range names {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendValue(append(appendText(buf, name), ':'), m[name])
	}
	return append(buf, '}')
}

// appendMember appends one member to an unfinished JSON object in buf: prefix, such as
// `,"cookies":`, and then a list of the strings in texts. It calls appendOne to append each string.
// If texts is empty, appendMember appends nothing.
func appendMember(buf []byte, prefix string, texts []string, appendOne func([]byte, string) []byte) []byte {
	if len(texts) == 0 {
		return buf
	}
	return appendTexts(append(buf, prefix...), texts, appendOne)
}

func appendTexts(buf []byte, texts []string, appendOne func([]byte, string) []byte) []byte {
	buf = append(buf, '[')
	for i, t := range texts {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendOne(buf, t)
	}
	return append(buf, ']')
}

// appendBytes appends s as a JSON string in base64, for bytes that may not be valid UTF-8.
func appendBytes(buf []byte, s string) []byte {
	buf = append(buf, '"')
	buf = base64.StdEncoding.AppendEncode(buf, []byte(s))
	return append(buf, '"')
}

// appendText appends s as a JSON string (RFC 8259, section 7). Like encoding/json, it escapes
// U+2028 and U+2029, which end a line in JavaScript, and replaces invalid UTF-8 with U+FFFD.
func appendText(buf []byte, s string) []byte {
	const hex = "0123456789abcdef"
	buf = append(buf, '"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			buf = append(buf, s[begin:i]...)
			switch c {
			case '"', '\\':
				buf = append(buf, '\\', c)
			case '\b':
				buf = append(buf, '\\', 'b')
			case '\f':
				buf = append(buf, '\\', 'f')
			case '\n':
				buf = append(buf, '\\', 'n')
			case '\r':
				buf = append(buf, '\\', 'r')
			case '\t':
				buf = append(buf, '\\', 't')
			default:
				buf = append(buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
			}
			i++
			begin = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			buf = append(append(buf, s[begin:i]...), `\ufffd`...)
			begin = i + size
		case r == '\u2028' || r == '\u2029':
			buf = append(append(buf, s[begin:i]...), '\\', 'u', '2', '0', '2', hex[r&0xF])
			begin = i + size
		}
		i += size
	}
	return append(append(buf, s[begin:]...), '"')
}
