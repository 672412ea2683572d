// Package eventkey puts the idempotency key on events to Amazon EventBridge. An
// event has no attributes, so the key is a member of its detail:
//
//	{"x-idempotency-key":"…", the rest as it was, byte for byte}
//
// See package propagate for which key that is. Rules that match a detail by its
// members are not disturbed by one more.
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

// Entry puts the key of what a guarded handler sends under name on an event. Each
// entry of a PutEvents request needs a name of its own.
//
// The error is [propagate.ErrUnguarded] outside of a guarded handler,
// [propagate.ErrOtherKey] if the detail has the member already, in any capitalization,
// with another value (null is one) or twice, or says that the detail is no JSON object.
// The event is unchanged then.
func Entry(ctx context.Context, name string, e *types.PutEventsRequestEntry) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return EntryWithKey(key, e)
}

// EntryWithKey puts a key from elsewhere on an event. Its errors are Entry's.
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

// withMember returns a detail with the key as its first member, or unchanged if the key
// is there already, whatever the capitalization of its name. Consumers find the member
// in any capitalization, and refuse a detail that has two.
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
	before, after, _ := strings.Cut(detail, "{") // white space alone comes before it
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

// membersOf reads the members of a JSON object, repeated ones too, each by itself:
// readers disagree about which of them counts.
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
		m.name, _ = name.(string) // in valid JSON it is one
		if err := d.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("eventkey: the detail: %w", err)
		}
		members = append(members, m)
	}
	return members, nil
}
