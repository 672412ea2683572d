package lambdaidem

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// The text of a stored answer, as encoding/json writes it without HTML escapes, in
// a fifth of its time: every new request waits for it. TestR1_AnswersAreWrittenAsEncodingJSONDoes
// and FuzzAnswer hold the two to each other.

// append adds the answer to buf.
func (s *storedAnswer) append(buf []byte) []byte {
	buf = strconv.AppendInt(append(buf, `{"statusCode":`...), int64(*s.StatusCode), 10)
	if s.StatusDescription != "" {
		buf = appendText(append(buf, `,"statusDescription":`...), s.StatusDescription)
	}
	buf = appendMap(buf, `,"headers":`, s.Headers, appendText)
	buf = appendMap(buf, `,"multiValueHeaders":`, s.MultiValueHeaders, appendTexts)
	buf = appendMember(buf, `,"cookies":`, s.Cookies)
	buf = appendText(append(buf, `,"body":`...), s.Body)
	if s.IsBase64Encoded {
		buf = append(buf, `,"isBase64Encoded":true`...)
	}
	buf = appendMap(buf, `,"beside":`, s.Beside, appendText)
	buf = appendMember(buf, `,"added":`, s.Added)
	buf = appendMember(buf, `,"removed":`, s.Removed)
	buf = appendMap(buf, `,"trailers":`, s.Trailers, appendTexts)
	if s.Bytes {
		buf = append(buf, `,"bytes":true`...)
	}
	return append(buf, '}')
}

// appendMap adds a member that is an object, by name, unless it is empty.
func appendMap[V any](buf []byte, member string, m map[string]V, value func([]byte, V) []byte) []byte {
	if len(m) == 0 {
		return buf
	}
	var room [16]string
	names := room[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	buf = append(append(buf, member...), '{')
	for i, name := range names {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = value(append(appendText(buf, name), ':'), m[name])
	}
	return append(buf, '}')
}

// appendMember adds a member that is a list, unless it is empty.
func appendMember(buf []byte, member string, texts []string) []byte {
	if len(texts) == 0 {
		return buf
	}
	return appendTexts(append(buf, member...), texts)
}

func appendTexts(buf []byte, texts []string) []byte {
	if texts == nil {
		return append(buf, "null"...)
	}
	buf = append(buf, '[')
	for i, t := range texts {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, t)
	}
	return append(buf, ']')
}

// appendText adds a string of JSON (RFC 8259, section 7). U+2028 and U+2029 are
// escaped, which end a line in JavaScript's eyes; what is not UTF-8 becomes U+FFFD.
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
