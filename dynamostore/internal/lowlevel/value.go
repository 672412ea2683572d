package lowlevel

import (
	"encoding/base64"
	"slices"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes is an item, a primary key or the values of an expression's placeholders.
type Attributes = map[string]types.AttributeValue

// AppendAttributes appends an object of attribute values, in DynamoDB's JSON. It returns false if a
// value is nil, has a type that this package does not know, or is a binary value with nil bytes.
// For nil bytes, the SDK sends null, which DynamoDB refuses. If this package wrote an empty value
// for them, DynamoDB would store that value.
func AppendAttributes(b []byte, attrs Attributes) (_ []byte, ok bool) {
	b = append(b, '{')
	first := true
	for name, v := range attrs {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(AppendString(b, name), ':')
		if b, ok = AppendValue(b, v); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

// AppendValue appends one attribute value, in DynamoDB's JSON. Like [AppendAttributes], it
// returns false for nil, for binary values with nil bytes, and for types that this package
// does not know.
func AppendValue(b []byte, v types.AttributeValue) (_ []byte, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		b = AppendString(append(b, `{"S":`...), v.Value)
	case *types.AttributeValueMemberN:
		b = AppendString(append(b, `{"N":`...), v.Value)
	case *types.AttributeValueMemberB:
		if v.Value == nil {
			return b, false
		}
		b = AppendBinary(append(b, `{"B":`...), v.Value)
	case *types.AttributeValueMemberBOOL:
		b = appendBool(append(b, `{"BOOL":`...), v.Value)
	case *types.AttributeValueMemberNULL:
		b = appendBool(append(b, `{"NULL":`...), v.Value)
	case *types.AttributeValueMemberM:
		if b, ok = AppendAttributes(append(b, `{"M":`...), v.Value); !ok {
			return b, false
		}
	case *types.AttributeValueMemberL:
		b = append(b, `{"L":[`...)
		for i, member := range v.Value {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = AppendValue(b, member); !ok {
				return b, false
			}
		}
		b = append(b, ']')
	case *types.AttributeValueMemberSS:
		b = appendSet(append(b, `{"SS":`...), v.Value, AppendString[string])
	case *types.AttributeValueMemberNS:
		b = appendSet(append(b, `{"NS":`...), v.Value, AppendString[string])
	case *types.AttributeValueMemberBS:
		if slices.ContainsFunc(v.Value, func(member []byte) bool { return member == nil }) {
			return b, false
		}
		b = appendSet(append(b, `{"BS":`...), v.Value, AppendBinary)
	default:
		return b, false
	}
	return append(b, '}'), true
}

func appendSet[T any](b []byte, members []T, appendOne func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOne(b, m)
	}
	return append(b, ']')
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

// AppendBinary appends data to b, as a JSON string in base64.
func AppendBinary(b, data []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// AppendNames appends a JSON object of strings.
func AppendNames(b []byte, names map[string]string) []byte {
	b = append(b, '{')
	first := true
	for placeholder, name := range names {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(AppendString(b, placeholder), ':')
		b = AppendString(b, name)
	}
	return append(b, '}')
}

// AppendString appends a JSON string (RFC 8259, section 7). Like the SDK, it replaces each
// byte that is not part of valid UTF-8 by U+FFFD.
func AppendString[T ~string | ~[]byte](b []byte, s T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
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
