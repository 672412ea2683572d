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

// Options bound the JSON that keys are made of. What is beyond a bound is an
// error. The zero value of every field is its default.
type Options struct {
	// MaxBytes is the largest JSON text in bytes. Default: 6 MiB, which is more than
	// Lambda accepts.
	MaxBytes int
	// MaxDepth is the deepest nesting. Default: 64, as it is that of
	// lambdaidem.Options.MaxJSONDepth.
	MaxDepth int
}

// Key makes keys by one expression. It is safe for concurrent use.
type Key struct {
	expression string
	compiled   *jmespath.JMESPath
	limits     canon.Limits
	maxBytes   int
}

// New compiles an expression. The error says what is wrong with it, or why it is
// refused: see the package's documentation. New panics on a negative option, and
// names the field.
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

// Must is New for expressions that are known to be good: it panics on an error.
func Must(expression string, optFns ...func(*Options)) *Key {
	k, err := New(expression, optFns...)
	if err != nil {
		panic(err.Error())
	}
	return k
}

// String returns the expression.
func (k *Key) String() string { return k.expression }

// Request returns the key of an HTTP request, in its body, whatever its media type says:
// for lambdaidem.Options.Key. A missing key is "". An error says why the body has no
// key: see JSON.
func (k *Key) Request(_ context.Context, r *lambdaidem.Request) (string, error) {
	return k.JSON(r.Body)
}

// Event finds the keys of typed events, for [lambdaidem.Handler]: in the JSON of
// the event as encoding/json writes it, so names are those of the fields' tags. A
// number that In holds in an interface was a float64 before, and two large ones may
// be one: give In a field of its own for it, an integer or a json.Number.
//
// Errors: those of [Key.JSON], and an event that JSON doesn't show; see
// [lambdaidem.HashKey].
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

// JSON returns the key in a JSON text, a message's body say. A missing key is "".
//
// Errors: the text is too large, is no JSON, or is JSON that readers disagree about;
// the result is true or false; a function was given what it does not take, such as
// starts_with a number, or something missing.
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

var errTruth = errors.New("the result is true or false, which tells no two requests apart")
