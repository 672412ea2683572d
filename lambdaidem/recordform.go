package lambdaidem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// What a record says to people and to programs of theirs, who have no guard's
// options: whose it is, and what is in its answer.

// RecordKind says what a record is of, and so which form its answer has.
type RecordKind string

// The kinds.
const (
	RecordHTTP    RecordKind = "http"    // a request over HTTP: DecodeAnswer reads its answer
	RecordValue   RecordKind = "value"   // a call of Do or Handler: the JSON of its result, or a Failure
	RecordMessage RecordKind = "message" // a message of a queue or a stream: {}
)

// RecordScope is [Record.Scope] in its parts, each as [ScopePart] writes it.
type RecordScope struct {
	Namespace string
	Method    string // of a request over HTTP; "" of Do, "invoke" of Handler, "message" of a message
	Route     string // with the host before it, if it has one; or the operation
	Principal string
	Tenant    string
}

// ParseScope reads the scope of a record that a guard has made.
func ParseScope(scope string) (RecordScope, error) {
	parts := strings.Split(scope, " ")
	const least, most = 4, 5
	if len(parts) < least || len(parts) > most {
		return RecordScope{}, fmt.Errorf("lambdaidem: ParseScope: %q has %d parts; a scope has namespace, method, route, principal and at most a tenant", scope, len(parts))
	}
	s := RecordScope{Namespace: parts[0], Method: parts[1], Route: parts[2], Principal: parts[3]}
	if len(parts) == most {
		s.Tenant = parts[4]
	}
	return s, nil
}

// Kind returns the kind of the scope's records.
func (s RecordScope) Kind() RecordKind {
	switch s.Method {
	case "", "invoke":
		return RecordValue
	case "message":
		return RecordMessage
	default:
		return RecordHTTP
	}
}

// ScopePart returns how a namespace, a route, a principal or a tenant stands in a scope:
// spaces and percent signs escaped, and cut where it is over 256 bytes, with a hash
// that tells it from others. What is looked for among records is compared so.
func ScopePart(s string) string { return scopePart(s) }

// ParseKey returns the key that a guard reads from the value of its header: without
// the quotes of an RFC 9651 String. An empty value is an error.
func ParseKey(value string) (string, error) {
	key, err := parseKey([]string{value})
	if err == nil && key == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("lambdaidem: ParseKey: %w", err)
	}
	return key, nil
}

// DecodeAnswer reads the answer of a [RecordHTTP]: Result.Value, loaded.
func DecodeAnswer(value []byte) (*Response, error) { return decodeAnswer(value) }

// EncodeAnswer returns an answer as a record keeps it.
func EncodeAnswer(r *Response) []byte { return encodeAnswer(r) }

// NoAnswer returns the failure of a record that is completed without an answer, and why
// there is none: every retry gets [ErrAnswerUnavailable], and none runs.
func NoAnswer(why string) *Failure {
	f := answerNotKept()
	f.Message = string(ErrAnswerUnavailable) + ": " + why
	return f
}

// DownstreamKey returns what [DownstreamKey] returns in the attempts at this record, to
// ask another service what it knows of an attempt that died.
func (r Record) DownstreamKey(name string) string { return downstreamKey(r.ID, name) }

// CheckResult returns an error unless a record of that scope can replay the result:
// every replay of another form would fail with [ErrAnswerUnreadable], or reach the
// client broken. It requires
//   - for a [RecordHTTP], a response as [EncodeAnswer] writes it, which can be sent:
//     a status of 200 to 599, no body where the status has none (204, 205, 304), at
//     most 6 MB, headers and cookies that HTTP allows, a Content-Length that is the
//     body's, and a body that is encoded as its Content-Encoding says;
//   - for a [RecordValue], JSON without white space between its tokens and at most
//     6 MB, or a failure with a code and a message. The JSON is replayed by value: the
//     order of members doesn't matter, but a number that the handler's type writes
//     differently (1.50), or a member that it doesn't have, makes each replay fail. The
//     type is not known here;
//   - for a [RecordMessage], {}.
//
// A failure made by [NoAnswer] fits each kind. The outcome is [OutcomeSucceeded] or
// [OutcomeFailed]; any other failure requires [OutcomeFailed].
func CheckResult(scope string, r Result) error {
	s, err := ParseScope(scope)
	if err != nil {
		return err
	}
	if r.Outcome != OutcomeSucceeded && r.Outcome != OutcomeFailed {
		return fmt.Errorf("lambdaidem: CheckResult: the outcome is %q; a record keeps %q or %q", r.Outcome, OutcomeSucceeded, OutcomeFailed)
	}
	switch {
	case r.Failure != nil && r.Value != nil:
		err = errors.New("it has both a value and a failure")
	case r.Failure != nil && r.Failure.Code == ErrAnswerUnavailable:
	case r.Failure != nil:
		err = checkFailure(s.Kind(), r)
	case s.Kind() == RecordHTTP:
		err = checkAnswer(r.Value)
	case s.Kind() == RecordMessage:
		if string(r.Value) != "{}" {
			err = errors.New("a message's is {}")
		}
	default:
		err = checkValue(r.Value)
	}
	if err != nil {
		return fmt.Errorf("lambdaidem: CheckResult: the answer of a record of kind %s: %w", s.Kind(), err)
	}
	return nil
}

func checkFailure(kind RecordKind, r Result) error {
	switch f := r.Failure; {
	case kind != RecordValue:
		return errors.New("a failure is none, but for one without an answer")
	case r.Outcome != OutcomeFailed:
		return fmt.Errorf("it is a failure, and the outcome is %q", r.Outcome)
	case f.Code == "" || f.Message == "":
		return errors.New("a failure has a code and a message")
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("the failure's status is %d; it must be 400 to 599, or none", f.Status)
	}
	return nil
}

func checkValue(value []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	if !bytes.Equal(compact.Bytes(), value) {
		return errors.New("its JSON has white space between its tokens; a handler's has none")
	}
	if again, err := normalized(value); err != nil || countTokens(again) != countTokens(value) {
		return errors.New("its JSON has a member twice; readers disagree about which one counts")
	}
	if len(value) > maxLambdaResponse {
		return fmt.Errorf("its JSON has %d bytes; Lambda returns at most 6 MB", len(value))
	}
	return nil
}

// checkAnswer returns an error unless value is a response as a guard stores it, and
// one that can be sent.
func checkAnswer(value []byte) error {
	r, err := decodeAnswer(value)
	if err != nil {
		return err
	}
	if string(encodeAnswer(r)) != string(value) {
		return errors.New("it has members, or white space, that no stored answer has")
	}
	return checkSendable(r)
}

// normalized returns JSON with each member once.
func normalized(text []byte) ([]byte, error) {
	v, err := fromJSON[any](text, true)
	if err != nil {
		return nil, err
	}
	return toJSON(v)
}

// countTokens returns the number of tokens in a JSON text.
func countTokens(text []byte) (n int) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	for {
		if _, err := dec.Token(); err != nil {
			return n
		}
		n++
	}
}
