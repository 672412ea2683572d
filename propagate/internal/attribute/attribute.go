// Package attribute is what SQS and SNS messages have in common, whose SDK types
// differ: how a key becomes a message attribute and a deduplication id.
package attribute

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/lambdaidem/toolkit/propagate"
)

// Max is how many attributes a message can have: SQS takes no more ("Amazon SQS
// message attributes"), and SNS drops a message with more on its way to an SQS
// queue with raw message delivery ("Amazon SNS message attributes").
const Max = 10

// maxDeduplicationID is how long a MessageDeduplicationId can be, in characters
// (SendMessage and Publish, API references).
const maxDeduplicationID = 128

// DataType is the type of the key's attribute.
const DataType = "String"

// Put returns attributes with the key among them, in a map of its own. value makes an
// attribute, and text reads a String attribute, in the SDK's type.
//
// Consumers find the key whatever the capitalization of its name, and refuse a message
// that has two. So an attribute of any capitalization is the key; if it differs from
// key, or is there twice, the error is propagate.ErrOtherKey.
func Put[V any](attributes map[string]V, key string, value func(string) V, text func(V) (string, bool)) (map[string]V, error) {
	if err := propagate.Check(key); err != nil {
		return nil, err
	}
	found := 0
	for name, have := range attributes {
		if !strings.EqualFold(name, propagate.Attribute) {
			continue
		}
		if s, ok := text(have); !ok || s != key {
			return nil, fmt.Errorf("%w: the message attribute %s; leave it out", propagate.ErrOtherKey, name)
		}
		found++
	}
	switch {
	case found == 1:
		return attributes, nil
	case found > 1:
		return nil, fmt.Errorf("%w: the message attribute %s is there %d times, in several spellings; leave them out", propagate.ErrOtherKey, propagate.Attribute, found)
	}
	if len(attributes) >= Max {
		return nil, fmt.Errorf("propagate: the message has %d attributes already; with %s there would be more than the %d that an SQS message can have",
			len(attributes), propagate.Attribute, Max)
	}
	out := maps.Clone(attributes)
	if out == nil {
		out = make(map[string]V, 1)
	}
	out[propagate.Attribute] = value(key)
	return out, nil
}

// DeduplicationID returns the key as a MessageDeduplicationId, where none but the same is
// there.
func DeduplicationID(have *string, key string) (*string, error) {
	if have != nil && *have != key {
		return nil, fmt.Errorf("%w: MessageDeduplicationId", propagate.ErrOtherKey)
	}
	if len(key) > maxDeduplicationID {
		return nil, fmt.Errorf("propagate: the key has %d characters; a MessageDeduplicationId can have at most %d", len(key), maxDeduplicationID)
	}
	for i := range len(key) {
		if key[i] == ' ' { // all else that a key can have is allowed
			return nil, errors.New("propagate: the key has a space; a MessageDeduplicationId can't have one")
		}
	}
	return &key, nil
}

// EntryName tells the entries of one batch apart. It can't be the name of another
// entry: an Id has no "#" (letters, digits, "-" and "_" alone).
func EntryName(name, id string) string { return name + "#" + id }
