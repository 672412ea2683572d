package lambdaidem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
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

// key is the idempotency key that a sender gave with a message. given is false if there is
// none. err says why the key is invalid.
type key struct {
	text  string
	given bool
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
	twice := m.sent.given
	m.sent = key{text: value, given: true}
	custom, isText := strings.CutPrefix(dataType, "String")
	switch {
	case twice:
		m.sent.err = fmt.Errorf("the message has %s twice", MessageKey)
	case !isText || custom == ".Array" || custom != "" && custom[0] != '.':
		m.sent.err = fmt.Errorf("%s has type %q; it must be String", MessageKey, dataType)
	}
}

// identify finds the key of a message and decides how the message may run. It sets one of
// three fields of t:
//
//   - call, if the message has a key and may run with a record
//   - unguarded, if the message runs without a record
//   - refusal, if the message must not run, for example because its key is missing or
//     invalid
//
// mayBegin returns an error if too little time is left. In that case, identify does not look for the
// key, and sets refusal.
func (b *messageGuard[E, M]) identify(ctx context.Context, event E, t *batchMessage[M], mayBegin func() error) {
	defer func() {
		if v := recover(); v != nil {
			t.refusal = keyInvalid("The message's key could not be found.", safeError(&panicError{v, nil}))
			t.refusal.forNow, t.panicked = true, true
		}
	}()
	t.message = b.read(event, t.raw)
	who := Identity{Namespace: b.g.opts.Namespace, Tenant: tenantOf(ctx), Operation: b.opts.Operation, Message: true}
	defaultTo(&who.Operation, t.source)
	defer func() {
		if t.call.who == (Identity{}) {
			t.call.who = who
		}
	}()
	if t.unguarded = b.g.off; t.unguarded {
		return
	}
	if err := mayBegin(); err != nil { // BatchOptions.Key takes time too
		t.refusal = notBegun(err)
		return
	}
	if who.Operation == "" {
		t.refusal = requestInvalid("The message names no source.", errNoSource)
		return
	}
	text, err := t.sent.text, t.sent.err
	switch {
	case b.opts.Key != nil:
		text, err = b.opts.Key(ctx, t.raw)
	case !t.sent.given:
		text, who.OwnID = t.id, true
	case text == "" && err == nil: // an empty key is invalid, and not missing, like an empty header
		err = errors.New("it is empty")
	}
	if err == nil && text != "" && !who.OwnID { // ValidateKey does not apply to ids that the source gave
		err = b.g.opts.ValidateKey(text)
	}
	switch {
	case err != nil:
		t.refusal = keyInvalid("The message's idempotency key is invalid.", safeError(err))
		t.refusal.forNow = b.opts.Key != nil
	case text == "" && b.g.opts.KeyOptional:
		t.unguarded = true
	case text == "":
		t.refusal = keyMissing("The message has no idempotency key.")
	default:
		who.Key = text
		p, parts := t.payload(b.opts.FingerprintAttributes)
		t.call = b.g.newCall(who, p, parts...)
		t.call.repeated = b.opts.Repeated != nil && b.opts.Repeated(t.raw)
		b.warnOfOwnID(t)
	}
}

var errNoSource = errors.New("the message names no source: set BatchOptions.Operation")

// warnOfOwnID logs a warning, once, if policy Hold is set and the key of a message is the
// id that the source gave it. If such a message is sent again, it has a new id, and Hold
// does not prevent a second run.
func (b *messageGuard[E, M]) warnOfOwnID(t *batchMessage[M]) {
	if b.g.opts.Policy != Hold || !t.call.who.OwnID {
		return
	}
	b.ownOnce.Do(func() {
		slog.Default().Warn("messages are guarded by the ids of their source: one that is sent or redriven anew has another, and runs though it is held; "+
			"let senders give a key ("+MessageKey+"), or set BatchOptions.Key", "source", t.source)
	})
}

// keyInJSON returns the idempotency key that the sender put into a JSON object, such as the
// detail of an event, as the member MessageKey. A null means that there is no key. If the object
// has the member twice, in any capitalization, the key is invalid, because JSON readers disagree
// about which of the two counts.
func keyInJSON(object json.RawMessage) key {
	var k key
	found := false
	for name, value := range members(object) {
		if !strings.EqualFold(name, MessageKey) {
			continue
		}
		if found {
			return key{given: true, err: fmt.Errorf("the member %s is there twice", MessageKey)}
		}
		found = true
		var text *string
		switch err := json.Unmarshal(value, &text); {
		case err != nil:
			k = key{given: true, err: fmt.Errorf("the member %s is not a string", name)}
		case text != nil:
			k = key{given: true, text: *text}
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
