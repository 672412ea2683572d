package dynamostore

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The attributes of an item, by their standard names.
const (
	attrID          = "id"                     // S, the partition key
	attrStatus      = "status"                 // S
	attrToken       = "token"                  // S, the fencing token (L3)
	attrAttempt     = "attempt"                // N
	attrLeaseEnd    = "in_progress_expiration" // N, epoch milliseconds (L5)
	attrExpiration  = "expiration"             // N, epoch seconds, the TTL attribute (L7)
	attrData        = "data"                   // S while it is UTF-8, else B
	attrValidation  = "validation"             // S, the request's fingerprint
	attrOutcome     = "outcome"                // S
	attrScope       = "scope"                  // S
	attrStartedAt   = "started_at"             // N, epoch milliseconds
	attrCompletedAt = "completed_at"           // N, epoch milliseconds
	attrFailure     = "failure"                // M
	attrEncoding    = "encoding"               // S, absent: data is the value as it is, and there are no steps
	attrParts       = "parts"                  // M, with an encoding of an answer
	attrSteps       = "steps"                  // M, until it is completed (E5)
	attrOperations  = "operations"             // L, what operators did (O2)
	attrErasing     = "erasing"                // M, parts that a purge has yet to delete
)

// keptNames are for the parts of an answer: no attribute may be renamed to one of
// them.
var keptNames = []string{attrPart}

// attribute is all that this package knows of one attribute.
type attribute struct {
	standard    string
	placeholder string            // of its name, in expressions
	setBy       updates           // the updates that write it, or remove it where they have no value
	field       func(*item) field // its value in an item
	option      *renaming         // nil: it can't be renamed
}

// updates is a set of UpdateItems.
type updates uint8

const (
	takeover updates = 1 << iota
	completion
	release
	saving // of steps
)

// itemAttributes is the one list of attributes. What is written, read, named in
// an expression or renamed by an option is found here and nowhere else. A lock
// writes them all; a takeover all but the key, the steps and the operations, which
// are the record's: it leaves nothing else of the old attempt.
var itemAttributes = [...]attribute{
	{attrID, "#id", 0, func(it *item) field { return (*text)(&it.ID) },
		&renaming{"IDAttribute", func(o *Options) *string { return &o.IDAttribute }}},
	{attrStatus, "#status", takeover | completion | release, func(it *item) field { return (*text)(&it.Status) },
		&renaming{"StatusAttribute", func(o *Options) *string { return &o.StatusAttribute }}},
	{attrExpiration, "#expiration", takeover | completion | release, func(it *item) field { return &it.Expiration },
		&renaming{"ExpirationAttribute", func(o *Options) *string { return &o.ExpirationAttribute }}},
	{attrLeaseEnd, "#lease_end", takeover, func(it *item) field { return &it.LeaseEnd },
		&renaming{"InProgressExpirationAttribute", func(o *Options) *string { return &o.InProgressExpirationAttribute }}},
	{attrData, "#data", takeover | completion, func(it *item) field { return (*payload)(&it.Data) },
		&renaming{"DataAttribute", func(o *Options) *string { return &o.DataAttribute }}},
	{attrValidation, "#validation", takeover, func(it *item) field { return (*text)(&it.Validation) },
		&renaming{"ValidationAttribute", func(o *Options) *string { return &o.ValidationAttribute }}},
	{attrToken, "#token", takeover, func(it *item) field { return (*text)(&it.Token) }, nil},
	{attrAttempt, "#attempt", takeover, func(it *item) field { return &it.Attempt }, nil},
	{attrOutcome, "#outcome", takeover | completion, func(it *item) field { return (*text)(&it.Outcome) }, nil},
	{attrScope, "#scope", takeover, func(it *item) field { return (*text)(&it.Scope) }, nil},
	{attrStartedAt, "#started_at", takeover, func(it *item) field { return &it.StartedAt }, nil},
	{attrCompletedAt, "#completed_at", takeover | completion, func(it *item) field { return &it.CompletedAt }, nil},
	{attrFailure, "#failure", takeover | completion, func(it *item) field { return failureField{&it.Failure} }, nil},
	{attrEncoding, "#encoding", saving | completion, func(it *item) field { return &it.Encoding }, nil},
	{attrParts, "#parts", completion, func(it *item) field { return partsField{&it.Parts} }, nil},
	{attrSteps, "#steps", saving | completion, func(it *item) field { return (*stepResults)(&it.Steps) }, nil},
	{attrOperations, "#operations", 0, func(it *item) field { return (*operations)(&it.Operations) }, nil},
	{attrErasing, "#erasing", 0, func(it *item) field { return partsField{&it.Erasing} }, nil},
}

// renaming is the field of Options that renames an attribute.
type renaming struct {
	field string
	name  func(*Options) *string
}

// layout is how the attributes are called in one table, in the order of
// itemAttributes.
type layout [len(itemAttributes)]column

type column struct {
	name   string // in the table
	value  string // the placeholder of its new value, ":status"
	assign string // "#status = :status"
}

// layout is the one that the options ask for.
func (o *Options) layout() *layout {
	l := &layout{}
	for i := range itemAttributes {
		a := &itemAttributes[i]
		value := ":" + a.placeholder[1:]
		l[i] = column{name: a.standard, value: value, assign: a.placeholder + " = " + value}
		if a.option != nil {
			l[i].name = *a.option.name(o)
		}
	}
	return l
}

// id is the name of the partition key.
func (l *layout) id() string { return l[0].name }

// nameOf is the name of an attribute in this table.
func (l *layout) nameOf(standard string) string {
	for i := range itemAttributes {
		if itemAttributes[i].standard == standard {
			return l[i].name
		}
	}
	panic("no attribute is called " + standard)
}

// attributes is the item as the API takes it, under this table's names.
func (l *layout) attributes(it *item) attributes {
	const most = 14 // in one item: there is data or a failure, say; a map of more is twice the size
	attrs := make(attributes, most)
	for i := range l {
		if v := itemAttributes[i].field(it).write(); v != nil {
			attrs[l[i].name] = v
		}
	}
	return attrs
}

// parse reads an item. The error says in words why the item is not one of
// ours, or is damaged (D4): it must not be replayed, completed or taken over.
func (l *layout) parse(attrs attributes) (*item, error) {
	it := &item{}
	for i := range l {
		v := attrs[l[i].name]
		if v == nil {
			continue
		}
		a := &itemAttributes[i]
		if want := a.field(it).read(v); want != "" {
			return nil, foreign("its "+a.standard+" is not "+want, attrs)
		}
	}
	why := it.strange()
	if why != "" && attrs[attrPart] != nil {
		why = "it is a part of an answer"
	}
	if why != "" {
		return nil, foreign(why, attrs)
	}
	return it, nil
}

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

// names says what the placeholders stand for in an expression that sets what
// the updates set, under the condition: no others, or DynamoDB refuses it.
func (l *layout) names(sets updates, condition string) map[string]string {
	names := map[string]string{}
	for i := range itemAttributes {
		if a := &itemAttributes[i]; a.setBy&sets != 0 || mentions(condition, a.placeholder) {
			names[a.placeholder] = l[i].name
		}
	}
	return names
}

// mentions tells whether the placeholder is a word of the condition: "#start" is
// none of "#started_at".
func mentions(condition, placeholder string) bool {
	for rest := condition; ; {
		_, after, found := strings.Cut(rest, placeholder)
		if !found {
			return false
		}
		if after == "" || strings.IndexByte(" (),", after[0]) >= 0 {
			return true
		}
		rest = after
	}
}
