// Package eventkey adds an idempotency key to an Amazon EventBridge event that a guarded
// handler sends. An event has no attributes, so the key becomes the first member of the
// event's detail. The rest of the detail is not changed:
//
//	{"x-idempotency-key":"…", the original members, byte for byte}
//
// Package propagate describes the key. An EventBridge rule matches the members that it
// names, so an additional member does not affect it.
package eventkey

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/lambdaidem/toolkit/propagate"
)

// Entry adds an idempotency key to the detail of an event that a guarded handler sends. ctx
// is the handler's context, and the key is derived from name. Each event that the handler
// sends needs a different name, which must be the same in every attempt.
//
// The error is [propagate.ErrUnguarded] if ctx is not the context of a guarded handler. It
// is [propagate.ErrOtherKey] if the detail already has the member x-idempotency-key, in any
// capitalization, with another value (such as null) or twice. Entry also returns an error if
// the detail is not a JSON object. After an error the event is unchanged.
func Entry(ctx context.Context, name string, e *types.PutEventsRequestEntry) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return EntryWithKey(key, e)
}

// EntryWithKey is like [Entry], but adds the given key instead of a key that is derived from
// a name. It needs no guarded handler. It returns an error if the key is not valid; see
// [propagate.Check].
func EntryWithKey(key string, e *types.PutEventsRequestEntry) error {
	if err := propagate.Check(key); err != nil {
		return err
	}
	detail, err := withMember(aws.ToString(e.Detail), key)
	if err != nil {
		return err
	}
	e.Detail = &detail
	return nil
}

// withMember returns the detail with the key as an additional first member. If the detail
// already has the same key, withMember returns it unchanged. It ignores the capitalization
// of the member's name, because a consumer's guard ignores it too and refuses a detail with
// two keys.
func withMember(detail, key string) (string, error) {
	members, err := membersOf(detail)
	if err != nil {
		return "", err
	}
	found := 0
	for _, m := range members {
		if !strings.EqualFold(m.name, propagate.Attribute) {
			continue
		}
		var have *string
		if err := json.Unmarshal(m.value, &have); err != nil || have == nil || *have != key {
			return "", fmt.Errorf("%w: the detail's member %s; leave it out", propagate.ErrOtherKey, m.name)
		}
		found++
	}
	switch {
	case found == 1:
		return detail, nil
	case found > 1:
		return "", fmt.Errorf("%w: the detail's member %s is there %d times; leave them out", propagate.ErrOtherKey, propagate.Attribute, found)
	}
	value, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	before, after, _ := strings.Cut(detail, "{") // only white space can precede the brace
	comma := ","
	if len(members) == 0 {
		comma = ""
	}
	return before + `{"` + propagate.Attribute + `":` + string(value) + comma + after, nil
}

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of a JSON object in their order. If a name occurs more than
// once, membersOf returns every member with that name, because JSON parsers disagree about
// which of them counts.
func membersOf(detail string) ([]member, error) {
	if !json.Valid([]byte(detail)) {
		return nil, errors.New("eventkey: the detail is not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader([]byte(detail)))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("eventkey: the detail is no JSON object")
	}
	var members []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("eventkey: the detail: %w", err)
		}
		var m member
		m.name, _ = name.(string) // always a string, because the detail is valid JSON
		if err := d.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("eventkey: the detail: %w", err)
		}
		members = append(members, m)
	}
	return members, nil
}
