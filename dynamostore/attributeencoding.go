package dynamostore

import (
	"crypto/sha256"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// field encodes and decodes the value of one attribute of an item.
type field interface {
	// present reports whether the item has the attribute. If it does not, size and appendTo
	// must not be called.
	present() bool
	// size returns the value's size in bytes, as DynamoDB counts it; see sizeOf.
	size() int
	// appendTo appends the value in DynamoDB's JSON, such as {"S":"text"}.
	appendTo(b []byte) []byte
	// take decodes a value from DynamoDB's JSON and stores it in the receiver. It returns "" on
	// success. Otherwise it returns a description of what is valid, such as "a string".
	take(r *lowlevel.Reader) (want string)
}

// valueOf returns a field's value as the SDK's type, or nil if the item does not have the
// attribute.
func valueOf(f field) types.AttributeValue {
	if !f.present() {
		return nil
	}
	r := lowlevel.NewReader(string(f.appendTo(nil)))
	v, ok := r.Value()
	if !ok {
		panic("dynamostore: a field does not write DynamoDB's JSON")
	}
	return v
}

// takeValue stores v, a value of the SDK's type, in the field f. It returns "" if v is valid, and
// otherwise a description of what is valid.
func takeValue(f field, v types.AttributeValue) (want string) {
	text, ok := lowlevel.AppendValue(nil, v)
	if !ok {
		return "a value of a type that this version knows"
	}
	r := lowlevel.NewReader(string(text))
	return f.take(&r)
}

// wants returns "" if ok is true, that is, if the decoded value is valid. Otherwise it returns the
// parameter valid, a description of the valid values such as "a string". Implementations of
// field.take return the result of wants.
func wants(ok bool, valid string) string {
	if ok {
		return ""
	}
	return valid
}

// text is a string attribute. If the string is empty, the attribute is absent.
type text string

func (t *text) present() bool { return *t != "" }
func (t *text) size() int     { return len(*t) }

func (t *text) appendTo(b []byte) []byte {
	return append(lowlevel.AppendString(append(b, `{"S":`...), string(*t)), '}')
}

func (t *text) take(r *lowlevel.Reader) string {
	kind, s, ok := r.Scalar()
	*t = text(s)
	return wants(ok && kind == "S", "a string")
}

// sortKey is the sort key of an item, for a table that has one. It must equal the partition key,
// because the package needs only one key. Encoding an item writes the partition key, *id, as its
// sort key. Decoding an item stores its sort key in *value. The function item.strange then compares
// the sort key with the partition key.
type sortKey struct{ value, id *string }

func (k sortKey) present() bool                  { return *k.id != "" }
func (k sortKey) size() int                      { return len(*k.id) }
func (k sortKey) appendTo(b []byte) []byte       { return (*text)(k.id).appendTo(b) }
func (k sortKey) take(r *lowlevel.Reader) string { return (*text)(k.value).take(r) }

// optionalText is the value of a string attribute. It distinguishes an absent attribute from an
// empty string.
type optionalText struct {
	s     string
	isSet bool
}

func (t *optionalText) present() bool            { return t.isSet }
func (t *optionalText) size() int                { return len(t.s) }
func (t *optionalText) appendTo(b []byte) []byte { return (*text)(&t.s).appendTo(b) }

func (t *optionalText) take(r *lowlevel.Reader) string {
	t.isSet = true
	return (*text)(&t.s).take(r)
}

// integer is the value of a number attribute. It distinguishes an absent attribute from zero.
type integer struct {
	n     int64
	isSet bool
}

func (i *integer) present() bool { return i.isSet }

// size returns the size that DynamoDB counts for the number: one byte for each pair of significant
// digits, one byte more, and another one for a minus sign. sizeOfNumber returns the same size for
// a number in decimal text. size is faster, because it does not format the number.
func (i *integer) size() int {
	rest, digits, sign := i.n, 0, 0
	if rest < 0 {
		sign = 1
	}
	for rest != 0 && rest%10 == 0 { // trailing zeros are not significant
		rest /= 10
	}
	for ; rest != 0; rest /= 10 {
		digits++
	}
	return (digits+1)/2 + 1 + sign
}

func (i *integer) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"N":"`...), i.n, 10)
	return append(b, `"}`...)
}

func (i *integer) take(r *lowlevel.Reader) string {
	kind, s, ok := r.Scalar()
	n, err := strconv.ParseInt(s, 10, 64)
	*i = integer{n, true}
	return wants(ok && kind == "N" && err == nil, "a whole number of 64 bits")
}

// payload is the value of an attribute that holds an answer, or of a map's member that holds the
// result of a step. A nil payload means that the attribute or member is absent. Valid UTF-8 is
// stored as a string, which people can read in the AWS console, and other bytes as a binary value.
type payload []byte

func (p *payload) present() bool { return *p != nil }
func (p *payload) size() int     { return len(*p) }

func (p *payload) appendTo(b []byte) []byte {
	if utf8.Valid(*p) {
		b = lowlevel.AppendString(append(b, `{"S":`...), *p)
	} else {
		b = lowlevel.AppendBinary(append(b, `{"B":`...), *p)
	}
	return append(b, '}')
}

func (p *payload) take(r *lowlevel.Reader) string {
	kind, s, ok := r.Scalar()
	switch kind {
	case "S":
		*p = payload(s)
	case "B":
		var data []byte
		data, ok = lowlevel.Binary(s)
		*p = data
	default:
		ok = false
	}
	return wants(ok, "a string or binary")
}

// failureField is the attribute with the error that a completed record replays. If *failure is nil,
// the item does not have the attribute.
type failureField struct{ failure **lambdaidem.Failure }

// The members of the map in the attribute "failure". A member with the comment "optional" is
// absent if its value would be empty or zero.
const (
	failureCode    = "code"    // S
	failureType    = "type"    // S, optional
	failureMessage = "message" // S
	failureStatus  = "status"  // N, optional
)

func (f failureField) write() types.AttributeValue {
	e := *f.failure
	if e == nil {
		return nil
	}
	m := attributes{failureCode: str(e.Code), failureMessage: str(e.Message)}
	if e.Type != "" {
		m[failureType] = str(e.Type)
	}
	if e.Status != 0 {
		m[failureStatus] = number(int64(e.Status))
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (f failureField) read(v types.AttributeValue) string {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return "a map"
	}
	var code, kind, message text
	var status integer
	if !takeMember(m.Value, failureCode, &code) || !takeMember(m.Value, failureType, &kind) ||
		!takeMember(m.Value, failureMessage, &message) || !takeMember(m.Value, failureStatus, &status) {
		return "a failure: a map of " + failureCode + ", " + failureType + ", " + failureMessage + " and " + failureStatus
	}
	*f.failure = &lambdaidem.Failure{Code: lambdaidem.Code(code), Type: string(kind), Message: string(message), Status: int(status.n)}
	return ""
}

// takeMember sets f to the member of the map m that has the given name. If m has no such member, f
// keeps its value. takeMember returns false if the member is invalid, and otherwise true.
func takeMember(m attributes, name string, f field) bool {
	v := m[name]
	return v == nil || takeValue(f, v) == ""
}

func (f failureField) present() bool                  { return *f.failure != nil }
func (f failureField) size() int                      { return sizeOfValue(f.write()) }
func (f failureField) appendTo(b []byte) []byte       { return appendRare(b, f) }
func (f failureField) take(r *lowlevel.Reader) string { return takeRare(r, f) }

// partsField encodes and decodes an attribute that describes an answer that is compressed,
// encrypted or stored in parts. *parts is nil if the item does not have the attribute.
type partsField struct{ parts **parts }

// The members of the map in the attribute "parts".
const (
	partsCount    = "count"    // N, the number of parts; 0 if the record has the stored bytes
	partsLength   = "length"   // N, the size of the answer in bytes, before compression and encryption
	partsChecksum = "checksum" // B, SHA-256
	partsFailure  = "failure"  // BOOL, whether the answer is a failure; absent: it is a value
)

func (f partsField) write() types.AttributeValue {
	p := *f.parts
	if p == nil {
		return nil
	}
	m := attributes{
		partsCount: number(int64(p.Count)), partsLength: number(int64(p.Length)),
		partsChecksum: &types.AttributeValueMemberB{Value: p.Checksum},
	}
	if p.Failure {
		m[partsFailure] = &types.AttributeValueMemberBOOL{Value: true}
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (f partsField) read(v types.AttributeValue) string {
	const want = "a map of an answer's " + partsCount + ", " + partsLength + " and " + partsChecksum
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return want
	}
	var count, length integer
	sum, ok := m.Value[partsChecksum].(*types.AttributeValueMemberB)
	if !ok || len(sum.Value) != sha256.Size || takeValue(&count, m.Value[partsCount]) != "" || takeValue(&length, m.Value[partsLength]) != "" ||
		count.n < 0 || count.n > maxParts || length.n < 0 || length.n > maxAnswerBound {
		return want
	}
	*f.parts = &parts{Count: int(count.n), Length: int(length.n), Checksum: sum.Value}
	if failure := m.Value[partsFailure]; failure != nil {
		b, ok := failure.(*types.AttributeValueMemberBOOL)
		if !ok {
			return want
		}
		(*f.parts).Failure = b.Value
	}
	return ""
}

func (f partsField) present() bool                  { return *f.parts != nil }
func (f partsField) size() int                      { return sizeOfValue(f.write()) }
func (f partsField) appendTo(b []byte) []byte       { return appendRare(b, f) }
func (f partsField) take(r *lowlevel.Reader) string { return takeRare(r, f) }

// rareField is a field that few items have. Speed matters little for it, so instead of
// encoding and decoding JSON by hand, it converts its value to and from the SDK's types.
type rareField interface {
	// write returns the field's value in the SDK's type, or nil if the item does not have the
	// attribute.
	write() types.AttributeValue
	// read stores the given value in the field. It returns "" if the value is valid, and otherwise
	// a description of what is valid.
	read(types.AttributeValue) (want string)
}

func appendRare(b []byte, f rareField) []byte {
	b, ok := lowlevel.AppendValue(b, f.write())
	if !ok {
		panic("dynamostore: a field writes a value that DynamoDB does not know")
	}
	return b
}

func takeRare(r *lowlevel.Reader, f rareField) (want string) {
	v, ok := r.Value()
	if !ok {
		return "a value of a type that this version knows"
	}
	return f.read(v)
}

func str[S ~string](s S) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
