package lowlevel

import (
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// Reader reads the values of attributes, each with the white space before it. What
// it returns shares its memory with the text, but for what was escaped.
type Reader struct{ jsonread.Reader }

// NewReader returns a reader of the text.
func NewReader(text string) Reader { return Reader{jsonread.New(text)} }

// maxDepth bounds nested values: DynamoDB has up to 32 levels (AWS, "Quotas in
// Amazon DynamoDB").
const maxDepth = 40

// attributes takes an object of attribute values.
func (r *Reader) attributes(depth int) (Attributes, bool) {
	const usual = 14 // in an item of ours; a map of more is twice the size
	attrs := make(Attributes, usual)
	ok := r.Object(func(name string) bool {
		v, ok := r.value(depth)
		if _, twice := attrs[name]; !ok || twice {
			return false
		}
		attrs[name] = v
		return true
	})
	return attrs, ok
}

// value takes an attribute value: an object whose one member says its type.
func (r *Reader) value(depth int) (v types.AttributeValue, ok bool) {
	if depth > maxDepth || !r.Take('{') {
		return nil, false
	}
	kind, ok := r.Text()
	if !ok || !r.Take(':') {
		return nil, false
	}
	switch kind {
	case "S":
		var s string
		s, ok = r.Text()
		v = &types.AttributeValueMemberS{Value: s}
	case "N":
		var s string
		s, ok = r.Text()
		v = &types.AttributeValueMemberN{Value: s}
	case "B":
		var data []byte
		data, ok = r.binary()
		v = &types.AttributeValueMemberB{Value: data}
	case "BOOL":
		var is bool
		is, ok = r.Bool()
		v = &types.AttributeValueMemberBOOL{Value: is}
	case "NULL":
		var is bool
		is, ok = r.Bool()
		v = &types.AttributeValueMemberNULL{Value: is}
	case "M":
		var m Attributes
		m, ok = r.attributes(depth + 1)
		v = &types.AttributeValueMemberM{Value: m}
	case "L":
		var l []types.AttributeValue
		l, ok = jsonread.List(&r.Reader, func() (types.AttributeValue, bool) { return r.value(depth + 1) })
		v = &types.AttributeValueMemberL{Value: l}
	case "SS":
		var s []string
		s, ok = jsonread.List(&r.Reader, r.Text)
		v = &types.AttributeValueMemberSS{Value: s}
	case "NS":
		var s []string
		s, ok = jsonread.List(&r.Reader, r.Text)
		v = &types.AttributeValueMemberNS{Value: s}
	case "BS":
		var s [][]byte
		s, ok = jsonread.List(&r.Reader, r.binary)
		v = &types.AttributeValueMemberBS{Value: s}
	default:
		return nil, false
	}
	return v, ok && r.Take('}')
}

func (r *Reader) binary() ([]byte, bool) {
	s, ok := r.Text()
	if !ok {
		return nil, false
	}
	return Binary(s)
}

// Binary returns the bytes of a text in base64.
func Binary(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") { // which the decoder would pass over
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return data, err == nil
}

// Attributes takes an object of attribute values.
func (r *Reader) Attributes() (Attributes, bool) { return r.attributes(0) }

// Value takes an attribute value.
func (r *Reader) Value() (types.AttributeValue, bool) { return r.value(0) }

// Scalar takes an attribute value of type S, N or B, as the text that stands for
// it: a binary one in base64.
func (r *Reader) Scalar() (kind, text string, ok bool) {
	if !r.Take('{') {
		return "", "", false
	}
	kind, ok = r.Text()
	if !ok || kind != "S" && kind != "N" && kind != "B" || !r.Take(':') {
		return "", "", false
	}
	text, ok = r.Text()
	return kind, text, ok && r.Take('}')
}
