package dynamostore

import (
	"crypto/sha256"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// field is the value of one attribute in an item.
type field interface {
	// write is the value as the API takes it; nil: the attribute is absent.
	write() types.AttributeValue
	// read takes the value of an attribute that is there. It returns "", or
	// what the value should have been.
	read(v types.AttributeValue) (want string)
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

// optionalText is a string that may be absent, which is not the empty one.
type optionalText struct {
	s    string
	here bool
}

func (t *optionalText) write() types.AttributeValue {
	if !t.here {
		return nil
	}
	return str(t.s)
}

func (t *optionalText) read(v types.AttributeValue) string {
	t.here = true
	return (*text)(&t.s).read(v)
}

// integer is a whole number that may be absent, which is not zero.
type integer struct {
	n    int64
	here bool
}

func (i *integer) write() types.AttributeValue {
	if !i.here {
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

func str[S ~string](s S) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
