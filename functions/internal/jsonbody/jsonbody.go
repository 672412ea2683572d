// Package jsonbody reads a request's JSON body so strictly that no two readers
// can take it for different things: unknown members, members in another case,
// duplicate members, trailing data and invalid UTF-8 are all refused. Where
// money moves, a misspelt optional field should be an error, not a silence.
package jsonbody

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads body, which must be one JSON object, into the struct that into
// points at. Its errors are sentences for the client, and name the field.
func Decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the body is empty; send a JSON object")
	}
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	syntactic, semantic := (*jsontext.SyntacticError)(nil), (*json.SemanticError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntactic):
		return fmt.Errorf("%s: invalid JSON near byte %d: %w", field(syntactic.JSONPointer), syntactic.ByteOffset, syntactic.Err)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fmt.Errorf("%s: no such field", field(semantic.JSONPointer))
	case errors.As(err, &semantic):
		return fmt.Errorf("%s: must be %s", field(semantic.JSONPointer), wanted(semantic.GoType))
	default:
		return fmt.Errorf("the body can't be read as JSON: %w", err)
	}
}

// DecodeEvent decodes the body of an HTTP event, as Decode does.
func DecodeEvent(e events.APIGatewayV2HTTPRequest, into any) error {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return errors.New("the body is marked as base64 and is not")
		}
	}
	return Decode(body, into)
}

// longestName keeps a client's own nonsense short when it is told of it, in
// bytes.
const longestName = 100

// field names what a JSON Pointer (RFC 6901) points at.
func field(p jsontext.Pointer) string {
	name := string(p)
	switch {
	case name == "":
		return "the body"
	case len(name) > longestName:
		return strings.ToValidUTF8(name[1:longestName], "") + "…"
	default:
		return name[1:]
	}
}

// wanted says in JSON's words what a Go type takes.
func wanted(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "another type"
	case t.Kind() == reflect.Struct:
		return "a JSON object"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Int64:
		return "an integer of up to 64 bits, without fraction or exponent"
	default:
		return t.Kind().String()
	}
}
