package lowlevel

import (
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// Reader reads DynamoDB's JSON from left to right. Each method reads one value, after any white
// space, and returns false if the text is not such a value. The strings that the methods return
// share memory with the text, unless they were escaped.
type Reader struct{ jsonread.Reader }

// NewReader returns a Reader for the text.
func NewReader(text string) Reader { return Reader{jsonread.New(text)} }

// maxDepth limits how deeply values may be nested, and so the depth of the recursion in
// Reader. It is above DynamoDB's own limit of 32 levels (AWS, "Quotas in Amazon DynamoDB").
const maxDepth = 40

// attributes reads an object of attribute values. The parameter depth is the number of lists and
// maps that enclose the object. attributes returns false if the text is not such an object, if a
// name occurs twice, or if values are nested deeper than maxDepth.
func (r *Reader) attributes(depth int) (Attributes, bool) {
	const usual = 14 // most records have at most 14 attributes; a map for more would take twice the memory
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

// value reads an attribute value: an object with one member, whose name is the value's type, such
// as {"S":"text"}. The parameter depth is the number of lists and maps that enclose the value.
// value returns false if the text is not such an object, if a name occurs twice in a map, or if
// values are nested deeper than maxDepth.
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

// Binary decodes base64. It returns false if text is not valid base64.
func Binary(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") { // the decoder would ignore line breaks
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return data, err == nil
}

// Attributes reads a JSON object whose members are attribute values, such as an item. It
// returns false if the text is not such an object, if a name occurs twice in the object or in
// a map inside it, or if values are nested deeper than maxDepth.
func (r *Reader) Attributes() (Attributes, bool) { return r.attributes(0) }

// Value reads one attribute value, such as {"S":"text"}. It returns false if the text is not
// an attribute value, or for the other reasons that [Reader.Attributes] lists.
func (r *Reader) Value() (types.AttributeValue, bool) { return r.value(0) }

// Scalar reads an attribute value and returns its type, S, N or B, as kind. text is the string, the
// number in decimal, or the binary value in base64. ok is false if the input is not an attribute
// value of one of these types.
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
