package jmeskey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jmespath/go-jmespath"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// Options are limits for the JSON texts that keys are derived from. A JSON text that exceeds a
// limit is an error. A field with its zero value gets its default.
type Options struct {
	// MaxBytes is the maximum size of a JSON text in bytes. Default: 6 MiB. The body of a request
	// that Lambda accepts is smaller.
	MaxBytes int
	// MaxDepth is the maximum depth of nested objects and lists. Default: 64, the same as
	// the default of lambdaidem.Options.MaxJSONDepth.
	MaxDepth int
}

// Key derives idempotency keys with one expression. Create one with [New] or [Must]. It is
// safe for concurrent use.
type Key struct {
	expression string
	compiled   *jmespath.JMESPath
	limits     canon.Limits
	maxBytes   int
}

// New compiles an expression. It returns an error if the expression is malformed, or is valid
// JMESPath that this package does not allow; see "Expressions that are rejected" in the package
// documentation. New panics if an option is negative.
func New(expression string, optFns ...func(*Options)) (*Key, error) {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if o.MaxBytes < 0 || o.MaxDepth < 0 {
		panic(fmt.Sprintf("jmeskey: Options.MaxBytes is %d and Options.MaxDepth is %d; they must be positive, or 0 for the default", o.MaxBytes, o.MaxDepth))
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 6 << 20
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 64
	}
	if err := check(expression); err != nil {
		return nil, fmt.Errorf("jmeskey: the expression %q: %w", expression, err)
	}
	compiled, err := jmespath.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("jmeskey: the expression %q: %w", expression, err)
	}
	return &Key{expression, compiled, canon.Limits{Bytes: o.MaxBytes, Depth: o.MaxDepth}, o.MaxBytes}, nil
}

// Must is like [New], but panics instead of returning an error. It is for expressions that are
// constants of the program.
func Must(expression string, optFns ...func(*Options)) *Key {
	k, err := New(expression, optFns...)
	if err != nil {
		panic(err.Error())
	}
	return k
}

// String returns the expression.
func (k *Key) String() string { return k.expression }

// Request returns the key from the JSON body of an HTTP request, or "" if the key is missing.
// Its errors are those of [Key.JSON]. It ignores the Content-Type. Use it as
// lambdaidem.Options.Key.
func (k *Key) Request(_ context.Context, r *lambdaidem.Request) (string, error) {
	return k.JSON(r.Body)
}

// Event returns a function that derives the key of a typed event, for [lambdaidem.Handler]. The
// function evaluates the expression on the event's JSON, as encoding/json writes it. The names in
// the expression are therefore those of the JSON tags.
//
// If a field of In with type any contains a number, encoding/json has decoded it as a float64, so
// two large numbers may have become equal. Give such a field an integer type or json.Number.
//
// The function returns the errors of [Key.JSON]. It also returns an error if the JSON does not
// represent the event completely; see [lambdaidem.HashKey].
func Event[In any](k *Key) func(context.Context, In) (string, error) {
	return func(_ context.Context, in In) (string, error) {
		if _, err := lambdaidem.HashKey(in); err != nil {
			return "", fmt.Errorf("jmeskey: the event, as the one field: %w", err)
		}
		text, err := json.Marshal(in)
		if err != nil {
			return "", fmt.Errorf("jmeskey: the event: %w", err)
		}
		return k.JSON(text)
	}
}

// JSON returns the key from a JSON text, such as the body of a message. It returns "" if the key is
// missing, and an error in these cases:
//
//   - The text exceeds a limit of [Options], is not JSON, or is JSON that parsers may read
//     differently.
//   - The expression's result is a boolean, which can't be a key.
//   - A function in the expression gets an argument that it does not support, such as a missing
//     value in starts_with.
func (k *Key) JSON(text []byte) (string, error) {
	if len(text) > k.maxBytes {
		return "", fmt.Errorf("jmeskey: the JSON has %d bytes; at most %d are allowed", len(text), k.maxBytes)
	}
	form, ok := canon.Append(nil, text, k.limits)
	if !ok {
		return "", fmt.Errorf("jmeskey: the text is no JSON, is JSON that its readers may disagree about, or is nested deeper than %d", k.limits.Depth)
	}
	dec := json.NewDecoder(bytes.NewReader(form))
	dec.UseNumber()
	var document any
	if err := dec.Decode(&document); err != nil {
		return "", fmt.Errorf("jmeskey: %w", err)
	}
	found, err := k.compiled.Search(document)
	if err != nil {
		return "", fmt.Errorf("jmeskey: %s: %w", k.expression, err)
	}
	key, err := keyOf(found, document)
	if err != nil {
		return "", fmt.Errorf("jmeskey: %s: %w", k.expression, err)
	}
	return key, nil
}

var errBoolean = errors.New("the result is true or false, which tells no two requests apart")
