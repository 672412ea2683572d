package lowlevel

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes is an item, a key or the values of an expression.
type Attributes = map[string]types.AttributeValue

// appendAttributes writes an object of attribute values. It reports false for a
// value that has no form on the wire: nil, or a type that the SDK has not today.
func appendAttributes(b []byte, attrs Attributes) (_ []byte, ok bool) {
	b = append(b, '{')
	first := true
	for name, v := range attrs {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, name), ':')
		if b, ok = appendValue(b, v); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func appendValue(b []byte, v types.AttributeValue) (_ []byte, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		b = appendString(append(b, `{"S":`...), v.Value)
	case *types.AttributeValueMemberN:
		b = appendString(append(b, `{"N":`...), v.Value)
	case *types.AttributeValueMemberB:
		b = appendBinary(append(b, `{"B":`...), v.Value)
	case *types.AttributeValueMemberBOOL:
		b = appendBool(append(b, `{"BOOL":`...), v.Value)
	case *types.AttributeValueMemberNULL:
		b = appendBool(append(b, `{"NULL":`...), v.Value)
	case *types.AttributeValueMemberM:
		if b, ok = appendAttributes(append(b, `{"M":`...), v.Value); !ok {
			return b, false
		}
	case *types.AttributeValueMemberL:
		b = append(b, `{"L":[`...)
		for i, member := range v.Value {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendValue(b, member); !ok {
				return b, false
			}
		}
		b = append(b, ']')
	case *types.AttributeValueMemberSS:
		b = appendSet(append(b, `{"SS":`...), v.Value, appendString)
	case *types.AttributeValueMemberNS:
		b = appendSet(append(b, `{"NS":`...), v.Value, appendString)
	case *types.AttributeValueMemberBS:
		b = appendSet(append(b, `{"BS":`...), v.Value, appendBinary)
	default:
		return b, false
	}
	return append(b, '}'), true
}

func appendSet[T any](b []byte, members []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, m)
	}
	return append(b, ']')
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

func appendBinary(b, data []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// appendNames writes an object of texts.
func appendNames(b []byte, names map[string]string) []byte {
	b = append(b, '{')
	first := true
	for placeholder, name := range names {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, placeholder), ':')
		b = appendString(b, name)
	}
	return append(b, '}')
}

// appendString writes a text (RFC 8259, section 7). A byte that is no UTF-8
// becomes U+FFFD, as with the SDK.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[begin:i]...)
				b = append(b, "\uFFFD"...)
				begin = i + 1
			}
			i += size
			continue
		case c == '"', c == '\\':
			b = append(b, s[begin:i]...)
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, s[begin:i]...)
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			i++
			continue
		}
		i++
		begin = i
	}
	b = append(b, s[begin:]...)
	return append(b, '"')
}
