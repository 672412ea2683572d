// Package jsonbody decodes JSON bodies that every JSON reader understands in the same way.
// It refuses unknown members, members with different capitalization, duplicate members,
// trailing data and invalid UTF-8. A service that moves money must not ignore a misspelled
// optional field.
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

// Decode decodes body, which must be one JSON object, into the struct that into points to.
// The text of an error names the field and may be sent to the client.
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

// DecodeEvent is like Decode for the body of an HTTP event. It decodes base64 first, if the
// event says that the body is base64.
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

// longestName is the maximum length of a field's name in an error, in bytes. A client can
// send names of any length.
const longestName = 100

// field returns the name of the field that a JSON Pointer (RFC 6901) points to, for an
// error.
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

// wanted returns the JSON type that a Go type is decoded from, for an error.
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
