// Package attribute turns an idempotency key into a message attribute and into a
// deduplication id. Packages sqskey and snskey share it, because SQS and SNS have the same
// rules although their SDK types differ.
package attribute

import (
	"fmt"
	"maps"
	"strings"

	"github.com/lambdaidem/toolkit/propagate"
)

// Max is the maximum number of attributes of a message. SQS refuses a message with more
// ("Amazon SQS message attributes"). SNS accepts it, but drops it instead of delivering it
// to an SQS queue with raw message delivery ("Amazon SNS message attributes").
const Max = 10

// DataType is the DataType of the message attribute that contains the key.
const DataType = "String"

// Put returns a copy of attributes with an additional attribute that contains the key. If
// attributes already contains the same key, Put returns it unchanged. V is the SDK's type
// of an attribute: value returns an attribute with the given text, and text returns the
// text of an attribute, with false if the attribute's type is not String.
//
// A consumer's guard ignores the capitalization of an attribute's name, and refuses a
// message with two keys. So Put ignores it too. If attributes already contains a different
// key, or more than one, the error is propagate.ErrOtherKey.
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

// EntryName returns the name of one entry of a batch, from which propagate.Key derives the
// entry's key. name is the name of the batch, and id is the entry's Id. Different entries
// have different names, because an Id contains only letters, digits, "-" and "_", and no
// "#".
func EntryName(name, id string) string { return name + "#" + id }
