package lambdaidem

import (
	"errors"
	"fmt"
	"strings"
)

// This file is for operators' programs, such as the command idem, which read and write
// records without a guard: it decodes the scope of a record, and decodes its answer. The
// file checkresult.go checks an answer.

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

// IDPrefixOf returns the Options.IDPrefix of the guard that made the id of a record, or "" if the
// guard had none. If each tenant has its own prefix, an operator can select the records of one
// tenant by the prefix, but not by Record.Scope: records of two tenants may have equal scopes.
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

// DecodeAnswer decodes the Result.Value of a record of kind [RecordHTTP] into a response. If
// Result.Apart is set, the store keeps the Value outside the record: call [Loader.Load] first to
// get the Value.
func DecodeAnswer(value []byte) (*Response, error) { return decodeAnswer(value) }

// EncodeAnswer encodes a response as the Result.Value of a record of kind [RecordHTTP].
func EncodeAnswer(r *Response) []byte { return encodeAnswer(r) }

// NoAnswer returns a value for Result.Failure, for an operator who completes a record
// without an answer. The handler does not run again, and every retry gets
// [ErrAnswerUnavailable]. The only exception is a record of kind [RecordMessage] with
// [OutcomeSucceeded]: its message counts as handled, and the next delivery of the message
// succeeds. The text of the failure, Failure.Message, contains the parameter reason.
func NoAnswer(reason string) *Failure {
	f := answerNotKept()
	f.Message = string(ErrAnswerUnavailable) + ": " + reason
	return f
}

// DownstreamKey returns the key that a handler of this record gets if it calls the function
// [DownstreamKey] with the same name. The key is the same in every attempt. An operator can use
// the key to ask another service whether an attempt that died has called that service.
func (r Record) DownstreamKey(name string) string { return downstreamKey(r.ID, name) }
