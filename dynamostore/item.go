package dynamostore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
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
	attrEncoding    = "encoding"               // S, absent: data is the value as it is
)

// fixedAttributes can't be renamed, nor may another be renamed to one of them.
// parts and steps are kept for answers over several items and for steps.
var fixedAttributes = []string{
	attrToken, attrAttempt, attrOutcome, attrScope, attrStartedAt, attrCompletedAt, attrFailure, attrEncoding,
	"parts", "steps",
}

// item is a record as DynamoDB keeps it. Pointers tell absent from zero; an
// empty string is absent.
//
// All but the failure is written and read by hand: package attributevalue took
// three times as long, and 21 allocations more for a replay.
type item struct {
	ID          string
	Status      lambdaidem.State
	Token       string
	Attempt     int64
	LeaseEnd    *int64
	Expiration  *int64
	Validation  string
	Scope       string
	StartedAt   *int64
	CompletedAt *int64
	Outcome     string
	Data        []byte // nil: absent
	Failure     *lambdaidem.Failure
	Encoding    *string
}

// failure is lambdaidem.Failure with the names that the item gives its members.
// It is rare, so package attributevalue writes and reads it.
type failure struct {
	Code    lambdaidem.Code `dynamodbav:"code"`
	Type    string          `dynamodbav:"type,omitempty"`
	Message string          `dynamodbav:"message"`
	Status  int             `dynamodbav:"status,omitempty"`
}

// claimed is the item that an acquire leaves behind.
func claimed(c lambdaidem.Claim) item {
	attempt := int64(1)
	if c.Over != nil {
		attempt = int64(c.Over.Attempt) + 1
	}
	return item{
		ID:         c.ID,
		Status:     lambdaidem.InProgress,
		Token:      c.Token,
		Attempt:    attempt,
		LeaseEnd:   epochMillis(c.LeaseEnd),
		Expiration: epochSeconds(c.Expires),
		Validation: text(c.Fingerprint),
		Scope:      text(c.Scope),
		StartedAt:  epochMillis(c.Now),
	}
}

// finish turns the item of an attempt into that of its result.
func (it *item) finish(r lambdaidem.Result) {
	it.Status = lambdaidem.Completed
	it.Outcome = string(r.Outcome)
	it.CompletedAt = epochMillis(r.At)
	it.Expiration = epochSeconds(r.Expires)
	it.Data = r.Value
	if f := r.Failure; f != nil {
		it.Failure = &lambdaidem.Failure{Code: lambdaidem.Code(text(string(f.Code))), Type: text(f.Type), Message: text(f.Message), Status: f.Status}
	}
}

// text makes a string one that DynamoDB can keep: UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// layout maps each attribute's standard name to its name in the table.
type layout map[string]string

// layout is the one that the options ask for.
func (o *Options) layout() layout {
	l := layout{}
	for standard := range placeholders {
		l[standard] = standard
	}
	for _, a := range o.renamable() {
		l[a.standard] = *a.name
	}
	return l
}

// attributes is the item as the API takes it, under this table's names.
func (l layout) attributes(it item) attributes {
	attrs := make(attributes, len(l))
	texts := func(standard, s string) {
		if s != "" {
			attrs[l[standard]] = str(s)
		}
	}
	numbers := func(standard string, n *int64) {
		if n != nil {
			attrs[l[standard]] = number(*n)
		}
	}
	texts(attrID, it.ID)
	texts(attrStatus, string(it.Status))
	texts(attrToken, it.Token)
	numbers(attrAttempt, &it.Attempt)
	numbers(attrLeaseEnd, it.LeaseEnd)
	numbers(attrExpiration, it.Expiration)
	texts(attrValidation, it.Validation)
	texts(attrScope, it.Scope)
	numbers(attrStartedAt, it.StartedAt)
	numbers(attrCompletedAt, it.CompletedAt)
	texts(attrOutcome, it.Outcome)
	if it.Data != nil {
		attrs[l[attrData]] = payload(it.Data)
	}
	if f := it.Failure; f != nil {
		av, err := attributevalue.Marshal(failure(*f))
		if err != nil { // texts and a number: can't happen
			panic(err)
		}
		attrs[l[attrFailure]] = av
	}
	return attrs
}

// payload is a string attribute while the bytes are UTF-8, so that a person can
// read an answer in the console, and a binary one otherwise (R1).
func payload(data []byte) types.AttributeValue {
	if utf8.Valid(data) {
		return &types.AttributeValueMemberS{Value: string(data)}
	}
	return &types.AttributeValueMemberB{Value: data}
}

// parse reads an item. The error says in words why the item is not one of
// ours, or is damaged (D4): it must not be replayed, completed or taken over.
func (l layout) parse(attrs attributes) (item, error) {
	r := reader{attrs: attrs, names: l}
	it := item{
		ID:          r.text(attrID),
		Status:      lambdaidem.State(r.text(attrStatus)),
		Token:       r.text(attrToken),
		LeaseEnd:    r.number(attrLeaseEnd),
		Expiration:  r.number(attrExpiration),
		Validation:  r.text(attrValidation),
		Scope:       r.text(attrScope),
		StartedAt:   r.number(attrStartedAt),
		CompletedAt: r.number(attrCompletedAt),
		Outcome:     r.text(attrOutcome),
		Data:        r.payload(attrData),
		Failure:     r.failure(attrFailure),
		Encoding:    r.optionalText(attrEncoding),
	}
	if n := r.number(attrAttempt); n != nil {
		it.Attempt = *n
	}
	why := r.wrong
	if why == "" {
		why = it.strange()
	}
	if why != "" {
		return item{}, &foreignItemError{why: why + "; it has " + attributeNames(attrs)}
	}
	return it, nil
}

// reader reads attributes by their standard names, and remembers in words the
// first that has another type than ours.
type reader struct {
	attrs attributes
	names layout
	wrong string
}

func (r *reader) mistaken(standard, want string) {
	if r.wrong == "" {
		r.wrong = "its " + standard + " is not " + want
	}
}

// optionalText is nil if the attribute is absent.
func (r *reader) optionalText(standard string) *string {
	switch v := r.attrs[r.names[standard]].(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberS:
		return &v.Value
	default:
		r.mistaken(standard, "a string")
		return nil
	}
}

func (r *reader) text(standard string) string {
	if s := r.optionalText(standard); s != nil {
		return *s
	}
	return ""
}

func (r *reader) number(standard string) *int64 {
	switch v := r.attrs[r.names[standard]].(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberN:
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return &n
		}
	}
	r.mistaken(standard, "a whole number of 64 bits")
	return nil
}

func (r *reader) payload(standard string) []byte {
	switch v := r.attrs[r.names[standard]].(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberS:
		return []byte(v.Value)
	case *types.AttributeValueMemberB:
		if v.Value == nil { // there, and empty
			return []byte{}
		}
		return v.Value
	default:
		r.mistaken(standard, "a string or binary")
		return nil
	}
}

func (r *reader) failure(standard string) *lambdaidem.Failure {
	av := r.attrs[r.names[standard]]
	if av == nil {
		return nil
	}
	var f failure
	if _, ok := av.(*types.AttributeValueMemberM); !ok {
		r.mistaken(standard, "a map")
	} else if err := attributevalue.Unmarshal(av, &f); err != nil {
		r.mistaken(standard, "a failure: "+err.Error())
	}
	return (*lambdaidem.Failure)(&f)
}

// strange says what keeps the item from being a record; "" if nothing does.
func (it *item) strange() string {
	switch {
	case it.ID == "":
		return "it has no " + attrID
	case it.Token == "":
		return "it has no " + attrToken
	case it.Attempt < 1:
		return "its " + attrAttempt + " is not 1 or more"
	case it.LeaseEnd == nil:
		return "it has no " + attrLeaseEnd
	case it.Encoding != nil:
		return fmt.Sprintf("its %s %q is unknown to this version", attrEncoding, *it.Encoding)
	}
	switch it.Status {
	case lambdaidem.InProgress, lambdaidem.Released:
		return ""
	case lambdaidem.Completed:
	default:
		return fmt.Sprintf("its %s %q is none of ours", attrStatus, it.Status)
	}
	switch o := lambdaidem.Outcome(it.Outcome); {
	case o != lambdaidem.OutcomeSucceeded && o != lambdaidem.OutcomeFailed:
		return fmt.Sprintf("it is completed with %s %q, which is none of ours", attrOutcome, it.Outcome)
	case it.Data != nil && it.Failure != nil:
		return "it has both " + attrData + " and " + attrFailure
	}
	return ""
}

func attributeNames(attrs map[string]types.AttributeValue) string {
	if len(attrs) == 0 {
		return "no attributes"
	}
	return "the attributes " + strings.Join(slices.Sorted(maps.Keys(attrs)), ", ")
}

// record is the item as the guard sees it.
func (it *item) record() lambdaidem.Record {
	r := lambdaidem.Record{
		ID:          it.ID,
		State:       it.Status,
		Token:       it.Token,
		Attempt:     int(it.Attempt),
		LeaseEnd:    fromMillis(it.LeaseEnd),
		Expires:     fromSeconds(it.Expiration),
		Fingerprint: it.Validation,
		Scope:       it.Scope,
		StartedAt:   fromMillis(it.StartedAt),
	}
	if it.Status != lambdaidem.Completed {
		return r
	}
	r.CompletedAt = fromMillis(it.CompletedAt)
	r.Result = lambdaidem.Result{Outcome: lambdaidem.Outcome(it.Outcome), At: r.CompletedAt, Expires: r.Expires}
	r.Result.Value, r.Result.Failure = it.Data, it.Failure
	return r
}

// foreignItemError is what parse says of an item that is no record of ours.
type foreignItemError struct{ why string }

func (e *foreignItemError) Error() string {
	return "the item under this id is not a record of this toolkit, or is damaged: " + e.why +
		"; delete it if nothing else uses it, or give this guard another namespace or table"
}

func isForeign(err error) bool {
	foreign := (*foreignItemError)(nil)
	return errors.As(err, &foreign)
}

// A zero time is an absent attribute.

func epochMillis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

func epochSeconds(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.Unix())
}

func fromMillis(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms).UTC()
}

func fromSeconds(s *int64) time.Time {
	if s == nil {
		return time.Time{}
	}
	return time.Unix(*s, 0).UTC()
}
