package dynamostore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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

// item is a record as DynamoDB keeps it. Pointers tell absent from zero.
type item struct {
	ID          string           `dynamodbav:"id"`
	Status      lambdaidem.State `dynamodbav:"status"`
	Token       string           `dynamodbav:"token"`
	Attempt     int              `dynamodbav:"attempt"`
	LeaseEnd    *int64           `dynamodbav:"in_progress_expiration,omitempty"`
	Expiration  *int64           `dynamodbav:"expiration,omitempty"`
	Validation  string           `dynamodbav:"validation,omitempty"`
	Scope       string           `dynamodbav:"scope,omitempty"`
	StartedAt   *int64           `dynamodbav:"started_at,omitempty"`
	CompletedAt *int64           `dynamodbav:"completed_at,omitempty"`
	Outcome     string           `dynamodbav:"outcome,omitempty"`
	Data        *payload         `dynamodbav:"data,omitempty"`
	Failure     *failure         `dynamodbav:"failure,omitempty"`
	Encoding    *string          `dynamodbav:"encoding,omitempty"`
}

// failure is lambdaidem.Failure with the names that the item gives it.
type failure struct {
	Code    lambdaidem.Code `dynamodbav:"code"`
	Type    string          `dynamodbav:"type,omitempty"`
	Message string          `dynamodbav:"message"`
	Status  int             `dynamodbav:"status,omitempty"`
}

// payload is a string attribute while the bytes are UTF-8, so that a person can
// read an answer in the console, and a binary one otherwise (R1).
type payload []byte

func (p payload) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if utf8.Valid(p) {
		return &types.AttributeValueMemberS{Value: string(p)}, nil
	}
	return &types.AttributeValueMemberB{Value: p}, nil
}

func (p *payload) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		*p = payload(v.Value)
	case *types.AttributeValueMemberB:
		*p = payload(v.Value)
	default:
		return fmt.Errorf("%s is neither a string nor binary", attrData)
	}
	if *p == nil {
		*p = payload{}
	}
	return nil
}

// claimed is the item that an acquire leaves behind.
func claimed(c lambdaidem.Claim) item {
	attempt := 1
	if c.Over != nil {
		attempt = c.Over.Attempt + 1
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
	if r.Value != nil {
		it.Data = (*payload)(&r.Value)
	}
	if f := r.Failure; f != nil {
		it.Failure = &failure{Code: lambdaidem.Code(text(string(f.Code))), Type: text(f.Type), Message: text(f.Message), Status: f.Status}
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
func (l layout) attributes(it item) (map[string]types.AttributeValue, error) {
	standard, err := attributevalue.MarshalMap(it)
	if err != nil {
		return nil, err
	}
	attrs := make(map[string]types.AttributeValue, len(standard))
	for name, v := range standard {
		attrs[l[name]] = v
	}
	return attrs, nil
}

// parse reads an item. The error says in words why the item is not one of
// ours, or is damaged (D4): it must not be replayed, completed or taken over.
func (l layout) parse(attrs map[string]types.AttributeValue) (item, error) {
	// Only the exact names count: attributevalue would match them without case.
	known := make(map[string]types.AttributeValue, len(l))
	for standard, actual := range l {
		if v, ok := attrs[actual]; ok {
			known[standard] = v
		}
	}
	var it item
	if err := attributevalue.UnmarshalMap(known, &it); err != nil {
		return item{}, &foreignItemError{why: "an attribute has another type than ours", err: err}
	}
	if why := it.strange(); why != "" {
		return item{}, &foreignItemError{why: why + "; it has " + attributeNames(attrs)}
	}
	return it, nil
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
		Attempt:     it.Attempt,
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
	if it.Data != nil {
		r.Result.Value = *it.Data
	}
	if f := it.Failure; f != nil {
		r.Result.Failure = &lambdaidem.Failure{Code: f.Code, Type: f.Type, Message: f.Message, Status: f.Status}
	}
	return r
}

// foreignItemError is what parse says of an item that is no record of ours.
type foreignItemError struct {
	why string
	err error
}

func (e *foreignItemError) Error() string {
	s := "the item under this id is not a record of this toolkit, or is damaged: " + e.why
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s + "; delete it if nothing else uses it, or give this guard another namespace or table"
}

func (e *foreignItemError) Unwrap() error { return e.err }

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
