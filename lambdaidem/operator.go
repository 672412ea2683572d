package lambdaidem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// This file is for operators' programs, such as the command idem, which read and write
// records without a guard: it decodes the scope of a record, and decodes and checks its
// answer.

// RecordKind is the kind of call that a record belongs to. It determines the form of the
// stored answer.
type RecordKind string

// The kinds.
const (
	RecordHTTP    RecordKind = "http"    // an HTTP request; DecodeAnswer decodes Result.Value
	RecordValue   RecordKind = "value"   // a call of Do or Handler; Result.Value is the JSON of what the function returned
	RecordMessage RecordKind = "message" // a message of a queue or a stream; Result.Value is {}
)

// RecordScope is the Scope of a [Record], split into its parts. The fields have the parts as
// they are stored: escaped and shortened by [ScopePart].
type RecordScope struct {
	Namespace string // Options.Namespace of the guard
	Method    string // HTTP method; "" for Do, "invoke" for Handler, "message" for a message
	Route     string // route template or path, after the host if there is one; or the operation
	Principal string // the caller; empty for all callers that share their keys
	Tenant    string // Lambda's tenant id; empty without tenant isolation
}

// ParseScope splits the Scope of a record into its parts. It returns an error if the scope
// does not have the form that a guard writes: four or five parts, separated by spaces.
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

// Kind returns the kind of the records that have this scope.
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

// ScopePart returns a namespace, route, principal or tenant in the form that it has in a
// scope. Spaces and percent signs are escaped. A text of more than 256 bytes is cut, and a
// hash of the whole text is appended. To search records for a caller, compare
// RecordScope.Principal with ScopePart of the caller's name.
func ScopePart(s string) string { return scopePart(s) }

// IDPrefixOf returns the Options.IDPrefix of the guard that made the id of a record, or "" if
// the guard had none. An operator can use it to select the records of one tenant: the scopes of
// two tenants may be equal.
func IDPrefixOf(recordID string) string {
	rest, ok := strings.CutPrefix(recordID, idPrefix)
	prefix, _, found := strings.Cut(rest, "#")
	if !ok || !found {
		return ""
	}
	return prefix
}

// ParseKey returns the idempotency key in the value of a request header, as a guard reads
// it: without the quotes of an RFC 9651 String. An empty key is an error.
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

// DecodeAnswer decodes the Result.Value of a [RecordHTTP] into a response. If Result.Apart is
// set, the store keeps the Value outside the record: call [Loader.Load] first to get it.
func DecodeAnswer(value []byte) (*Response, error) { return decodeAnswer(value) }

// EncodeAnswer encodes a response as the Result.Value of a [RecordHTTP].
func EncodeAnswer(r *Response) []byte { return encodeAnswer(r) }

// NoAnswer returns a value for Result.Failure, for an operator who completes a record
// without an answer. The handler does not run again, and every retry gets
// [ErrAnswerUnavailable]. The only exception is a message whose record has
// [OutcomeSucceeded]: the message counts as handled, and its next delivery succeeds. The
// message of the failure contains the text of the parameter why.
func NoAnswer(why string) *Failure {
	f := answerNotKept()
	f.Message = string(ErrAnswerUnavailable) + ": " + why
	return f
}

// DownstreamKey returns the key that the function [DownstreamKey] returns in every attempt
// for this record. An operator can use it to ask another service whether an attempt that
// died has called that service.
func (r Record) DownstreamKey(name string) string { return downstreamKey(r.ID, name) }

// CheckResult returns an error if the guard could not replay r from a record with the given
// scope. An operator's program should call CheckResult before it completes a record by hand.
// Otherwise every replay might fail with [ErrAnswerUnreadable], or the client might receive a
// broken response. The scope says whether the record is of an HTTP request, a value or a
// message, and this decides what r must be:
//
//   - For a [RecordHTTP], r.Value must be a response that a server can send, as [EncodeAnswer]
//     encodes it. Its status must be 200 to 599. Its headers and cookies must be valid in
//     HTTP, without Transfer-Encoding. Its body must have at most 6 MB, and must be empty if
//     the status does not allow a body (204, 205, 304). If the response has a Content-Length
//     or a Content-Encoding, the body must match it. If the Content-Type is JSON and there is
//     no Content-Encoding, the body must be valid JSON.
//   - For a [RecordValue], r.Value must be JSON of at most 6 MB, without white space between
//     its tokens and without repeated members. A failure is valid instead of a value: r.Outcome
//     must then be [OutcomeFailed], and r.Failure must have a code, a message, and a status of
//     400 to 599 or 0 for no status.
//   - For a [RecordMessage], r.Value must be {}.
//
// r.Outcome must be [OutcomeSucceeded] or [OutcomeFailed]. A failure made by [NoAnswer] is
// valid for every kind, with either outcome.
//
// CheckResult does not know which type the handler of a RecordValue returns. A replay
// decodes the JSON into that type and encodes the value again. The replay fails if the new
// JSON differs. For example, a float64 turns 1.50 into 1.5, and a struct drops a member for
// which it has no field. The order of the members does not matter.
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

// checkAnswer returns an error if value does not have the exact form in which a guard stores
// a response, or if a server can't send that response.
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

// normalized decodes a JSON text and encodes it again. A member that is repeated in the text
// appears only once in the result. So the text has repeated members if and only if the result
// has fewer tokens.
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
