package lambdaidem

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// EventBridge guards a handler of EventBridge events. Lambda invokes the function asynchronously,
// with one event at a time, and at least once for each event. Retries and waiting are as for
// [Guard.SNS]. If several rules match an event, the function receives the event several times with
// the same id, and the handler runs once.
//
// The default BatchOptions.Operation is "events:REGION|ACCOUNT|SOURCE|TYPE". SOURCE is the event's
// source and TYPE its detail type, both chosen by the sender. REGION and ACCOUNT are the event's
// Region and account, which the sender can't choose.
func (g *Guard) EventBridge(h func(context.Context, events.EventBridgeEvent) error, optFns ...func(*BatchOptions[events.EventBridgeEvent])) func(context.Context, events.EventBridgeEvent) error {
	return wholeEvent(guardMessages(g, source[events.EventBridgeEvent, events.EventBridgeEvent]{
		list:           func(e events.EventBridgeEvent) []events.EventBridgeEvent { return []events.EventBridgeEvent{e} },
		read:           eventBridgeMessage,
		limitedRetries: true,
	}, h, optFns))
}

func eventBridgeMessage(_, e events.EventBridgeEvent) message {
	return message{name: e.ID, source: PrincipalOf(busOperation, e.Region, e.AccountID, e.Source, e.DetailType), id: e.ID,
		body: e.Detail, parts: busParts(e.Source, e.DetailType, e.AccountID, e.Region, e.Resources), form: []string{"event"},
		sent: keyInJSON(e.Detail)}
}

// busOperation is the prefix of the default operation of EventBridge events. It distinguishes
// these operations from those of all other sources, whose default operation is an ARN.
const busOperation = "events"

// busParts returns what the fingerprint of an event covers besides its detail.
func busParts(source, detailType, account, region string, resources []string) []string {
	return append([]string{source, detailType, account, region, strconv.Itoa(len(resources))}, resources...)
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
