package dynamostore

import (
	"crypto/sha256"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// field is the value of one attribute in an item.
type field interface {
	// write is the value as the API takes it; nil: the attribute is absent.
	write() types.AttributeValue
	// read takes the value of an attribute that is there. It returns "", or
	// what the value should have been.
	read(v types.AttributeValue) (want string)

	// here tells whether the attribute is.
	here() bool
	// size is the value's size in bytes, if it is here: see sizeOf.
	size() int
	// appendTo writes the value as JSON, if it is here.
	appendTo(b []byte) []byte
	// take is read from JSON. It reports false for what read would refuse.
	take(r *lowlevel.Reader) bool
}

// text is a string; the empty one is absent.
type text string

func (t *text) write() types.AttributeValue {
	if *t == "" {
		return nil
	}
	return str(*t)
}

func (t *text) read(v types.AttributeValue) string {
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		return "a string"
	}
	*t = text(s.Value)
	return ""
}

func (t *text) here() bool { return *t != "" }
func (t *text) size() int  { return len(*t) }

func (t *text) appendTo(b []byte) []byte {
	return append(lowlevel.AppendString(append(b, `{"S":`...), string(*t)), '}')
}

func (t *text) take(r *lowlevel.Reader) bool {
	kind, s, ok := r.Scalar()
	*t = text(s)
	return ok && kind == "S"
}

// optionalText is a string that may be absent, which is not the empty one.
type optionalText struct {
	s     string
	there bool
}

func (t *optionalText) write() types.AttributeValue {
	if !t.there {
		return nil
	}
	return str(t.s)
}

func (t *optionalText) read(v types.AttributeValue) string {
	t.there = true
	return (*text)(&t.s).read(v)
}

func (t *optionalText) here() bool               { return t.there }
func (t *optionalText) size() int                { return len(t.s) }
func (t *optionalText) appendTo(b []byte) []byte { return (*text)(&t.s).appendTo(b) }

func (t *optionalText) take(r *lowlevel.Reader) bool {
	t.there = true
	return (*text)(&t.s).take(r)
}

// texts are strings; nil is absent.
type texts []string

func (t *texts) write() types.AttributeValue {
	if *t == nil {
		return nil
	}
	list := &types.AttributeValueMemberL{}
	for _, s := range *t {
		list.Value = append(list.Value, str(s))
	}
	return list
}

func (t *texts) read(v types.AttributeValue) string {
	const want = "a list of strings"
	list, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		return want
	}
	*t = nil
	for _, v := range list.Value {
		s, ok := v.(*types.AttributeValueMemberS)
		if !ok {
			return want
		}
		*t = append(*t, s.Value)
	}
	return ""
}

func (t *texts) here() bool                   { return *t != nil }
func (t *texts) size() int                    { return sizeOfValue(t.write()) }
func (t *texts) appendTo(b []byte) []byte     { return appendWritten(b, t) }
func (t *texts) take(r *lowlevel.Reader) bool { return takeToRead(r, t) }

// integer is a whole number that may be absent, which is not zero.
type integer struct {
	n     int64
	there bool
}

func (i *integer) write() types.AttributeValue {
	if !i.there {
		return nil
	}
	return number(i.n)
}

func (i *integer) read(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberN); ok {
		if n, err := strconv.ParseInt(s.Value, 10, 64); err == nil {
			*i = integer{n, true}
			return ""
		}
	}
	return "a whole number of 64 bits"
}

func (i *integer) here() bool { return i.there }

// size is what sizeOfNumber says of its text.
func (i *integer) size() int {
	rest, digits, sign := i.n, 0, 0
	if rest < 0 {
		sign = 1
	}
	for rest != 0 && rest%10 == 0 { // no significant digits
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

func (i *integer) take(r *lowlevel.Reader) bool {
	kind, s, ok := r.Scalar()
	if !ok || kind != "N" {
		return false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	*i = integer{n, true}
	return err == nil
}

// payload is bytes; nil is absent. They are a string attribute while they are
// UTF-8, so that a person can read an answer in the console, and a binary one
// otherwise (R1).
type payload []byte

func (p *payload) write() types.AttributeValue {
	switch {
	case *p == nil:
		return nil
	case utf8.Valid(*p):
		return str(string(*p))
	}
	return &types.AttributeValueMemberB{Value: *p}
}

func (p *payload) read(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		*p = payload(v.Value)
	case *types.AttributeValueMemberB:
		*p = v.Value
	default:
		return "a string or binary"
	}
	return ""
}

func (p *payload) here() bool { return *p != nil }
func (p *payload) size() int  { return len(*p) }

func (p *payload) appendTo(b []byte) []byte {
	if utf8.Valid(*p) {
		b = lowlevel.AppendString(append(b, `{"S":`...), *p)
	} else {
		b = lowlevel.AppendBinary(append(b, `{"B":`...), *p)
	}
	return append(b, '}')
}

func (p *payload) take(r *lowlevel.Reader) bool {
	kind, s, ok := r.Scalar()
	switch {
	case ok && kind == "S":
		*p = payload(s)
	case ok && kind == "B":
		*p, ok = lowlevel.Binary(s)
	default:
		return false
	}
	return ok
}

// failureField is a failure; nil is absent. It is rare, so package
// attributevalue writes and reads it.
type failureField struct{ of **lambdaidem.Failure }

// failure is lambdaidem.Failure with the names that the item gives its members.
type failure struct {
	Code    lambdaidem.Code `dynamodbav:"code"`
	Type    string          `dynamodbav:"type,omitempty"`
	Message string          `dynamodbav:"message"`
	Status  int             `dynamodbav:"status,omitempty"`
}

func (f failureField) write() types.AttributeValue {
	if *f.of == nil {
		return nil
	}
	v, err := attributevalue.Marshal(failure(**f.of))
	if err != nil { // texts and a number: can't happen
		panic(err)
	}
	return v
}

func (f failureField) read(v types.AttributeValue) string {
	var into failure
	if _, ok := v.(*types.AttributeValueMemberM); !ok {
		return "a map"
	}
	if err := attributevalue.Unmarshal(v, &into); err != nil {
		return "a failure: " + err.Error()
	}
	*f.of = (*lambdaidem.Failure)(&into)
	return ""
}

func (f failureField) here() bool                   { return *f.of != nil }
func (f failureField) size() int                    { return sizeOfValue(f.write()) }
func (f failureField) appendTo(b []byte) []byte     { return appendWritten(b, f) }
func (f failureField) take(r *lowlevel.Reader) bool { return takeToRead(r, f) }

// partsField says how an encoded answer is put together; nil is absent.
type partsField struct{ of **parts }

// The members of the attribute.
const (
	partsCount    = "count"    // N
	partsLength   = "length"   // N, bytes
	partsChecksum = "checksum" // B
	partsFailure  = "failure"  // BOOL, absent: it is a value
)

func (f partsField) write() types.AttributeValue {
	p := *f.of
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
	if !ok || len(sum.Value) != sha256.Size || count.read(m.Value[partsCount]) != "" || length.read(m.Value[partsLength]) != "" ||
		count.n < 0 || count.n > maxParts || length.n < 0 || length.n > maxAnswerBound {
		return want
	}
	*f.of = &parts{Count: int(count.n), Length: int(length.n), Checksum: sum.Value}
	if failure := m.Value[partsFailure]; failure != nil {
		b, ok := failure.(*types.AttributeValueMemberBOOL)
		if !ok {
			return want
		}
		(*f.of).Failure = b.Value
	}
	return ""
}

func (f partsField) here() bool                   { return *f.of != nil }
func (f partsField) size() int                    { return sizeOfValue(f.write()) }
func (f partsField) appendTo(b []byte) []byte     { return appendWritten(b, f) }
func (f partsField) take(r *lowlevel.Reader) bool { return takeToRead(r, f) }

// appendWritten is appendTo of a field that is rare.
func appendWritten(b []byte, f field) []byte {
	b, ok := lowlevel.AppendValue(b, f.write())
	if !ok { // a value of this package: can't happen
		panic("dynamostore: an attribute has no form on the wire")
	}
	return b
}

// takeToRead is take of a field that is rare.
func takeToRead(r *lowlevel.Reader, f field) bool {
	v, ok := r.Value()
	return ok && f.read(v) == ""
}

func str[S ~string](s S) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
