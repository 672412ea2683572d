package lambdaidem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// CheckResult returns an error if the guard could not replay r from a record whose Scope is scope;
// see [Record]. An operator's program should call CheckResult before it completes a record by hand.
// Otherwise every replay might fail with [ErrAnswerUnreadable], or the client might receive a
// broken response.
//
// r.Outcome must be [OutcomeSucceeded] or [OutcomeFailed]. What else r must have depends on the
// kind of the record, which [RecordScope.Kind] returns:
//
//   - For a [RecordHTTP], r.Value must be a response that a server can send, as [EncodeAnswer]
//     encodes it. Its status must be 200 to 599. Its headers and cookies must be valid in HTTP,
//     without Transfer-Encoding. Its body must have at most 6 MB, and must be empty for status 204,
//     205 or 304. A Content-Length must be the body's length, and a Content-Encoding must be how
//     the body is encoded. If the Content-Type is JSON and there is no Content-Encoding, the body
//     must be valid JSON.
//   - For a [RecordValue], r.Value must be JSON of at most 6 MB, without white space between its
//     tokens and without repeated members. With OutcomeFailed, r must instead have an r.Failure
//     with a code, a message, and a status of 400 to 599 or 0 for no status.
//   - For a [RecordMessage], r.Value must be {}, and r.Outcome OutcomeSucceeded.
//
// Instead of all this, r may have an r.Failure made by [NoAnswer], and no r.Value. Such an r is
// valid for every kind of record and both outcomes.
//
// CheckResult does not know which type the handler of a RecordValue returns. A replay decodes the
// JSON into that type, and fails if encoding the value again changes more than the order of
// members. For example, a float64 turns 1.50 into 1.5, and a struct drops a member for which it has
// no field.
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
	case r.Outcome == OutcomeFailed && s.Kind() == RecordMessage:
		err = errors.New("its outcome is failed, and its value says that the message was handled; if it was not handled, complete the record without an answer (NoAnswer, or idem settle --no-answer)")
	case r.Outcome == OutcomeFailed:
		err = errors.New("its outcome is failed, and retries would return its value without an error; give a failure instead (Result.Failure, or idem settle --fail-code and --fail-message)")
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

// checkAnswer returns an error if value is not a response exactly as a guard stores it, or if a
// server can't send that response.
func checkAnswer(value []byte) error {
	r, err := decodeAnswer(value)
	if err != nil {
		return err
	}
	if string(encodeAnswer(r)) != string(value) {
		return errors.New("it has members, or white space, that no stored answer has")
	}
	// Check the header whatever the case of its name: under the key "content-length", net/http
	// sends it unchanged, and may add a Content-Length of its own. Clients reject a malformed
	// length, and two lengths that are spelled differently, such as 5 and 05.
	for _, length := range valuesOf(r, "Content-Length") {
		if n, err := strconv.ParseUint(length, 10, 63); err != nil || strconv.FormatUint(n, 10) != length {
			return fmt.Errorf("its Content-Length is %q; it must be a number without sign and leading zeros; leave the header out, the server sets it", length)
		}
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
