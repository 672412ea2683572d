package lambdaidem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// MessageKey is the name under which a sender gives the idempotency key of a message:
//
//   - SQS, SNS: a message attribute, which must have type String
//   - Kafka, RabbitMQ: a header
//   - ActiveMQ: a property
//   - EventBridge: a member of the event's detail, which must be a string
//   - WebSocket APIs: a member of the message's body, which must be a string
const MessageKey = "x-idempotency-key"

// key is the idempotency key that a sender gave with a message. isSet is false if there is
// none. err says why the key is invalid.
type key struct {
	text  string
	isSet bool
	err   error
}

// attribute adds a message attribute. If its name is MessageKey, ignoring case, attribute
// also sets the message's key. The key is invalid if the attribute is not of type String, or
// if there are two such attributes.
func (m *message) attribute(name, dataType, value string) {
	m.attrs = append(m.attrs, attribute{name, dataType, value})
	if !strings.EqualFold(name, MessageKey) {
		return
	}
	twice := m.senderKey.isSet
	m.senderKey = key{text: value, isSet: true}
	custom, isText := strings.CutPrefix(dataType, "String")
	switch {
	case twice:
		m.senderKey.err = fmt.Errorf("the message has %s twice", MessageKey)
	case !isText || custom == ".Array" || custom != "" && custom[0] != '.':
		m.senderKey.err = fmt.Errorf("%s has type %q; it must be String", MessageKey, dataType)
	}
}

// keyInJSON returns the idempotency key that the sender put into a JSON object, such as the detail
// of an event: the member MessageKey, in any capitalization. There is no key if the member is
// missing or null. The key is invalid if there are two such members, because JSON readers disagree
// about which one counts.
func keyInJSON(object json.RawMessage) key {
	var k key
	found := false
	for name, value := range members(object) {
		if !strings.EqualFold(name, MessageKey) {
			continue
		}
		if found {
			return key{isSet: true, err: fmt.Errorf("the member %s is there twice", MessageKey)}
		}
		found = true
		var text *string
		switch err := json.Unmarshal(value, &text); {
		case err != nil:
			k = key{isSet: true, err: fmt.Errorf("the member %s is not a string", name)}
		case text != nil:
			k = key{isSet: true, text: *text}
		}
	}
	return k
}

// members iterates over the members of a JSON object, in their order. It yields a repeated
// member each time that it occurs, and ends early if the JSON is invalid.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := json.NewDecoder(bytes.NewReader(object))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for d.More() {
			name, err := d.Token()
			var value json.RawMessage
			if err != nil || d.Decode(&value) != nil {
				return
			}
			if text, _ := name.(string); !yield(text, value) {
				return
			}
		}
	}
}
