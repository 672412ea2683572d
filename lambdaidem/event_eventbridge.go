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

// EventBridge guards a handler of EventBridge events. They come one at a time,
// asynchronously, at least once; what is said at [Guard.SNS] of retries and waiting
// holds here too. Several rules that match one event deliver it several times, under
// one id: it runs once.
//
// What an event's sender can't choose, its account and Region, and what it is, its
// source and detail type, are the default Operation: "events:REGION|ACCOUNT|SOURCE|TYPE".
func (g *Guard) EventBridge(h func(context.Context, events.EventBridgeEvent) error, optFns ...func(*BatchOptions[events.EventBridgeEvent])) func(context.Context, events.EventBridgeEvent) error {
	return asynchronous(guardMessages(g, source[events.EventBridgeEvent, events.EventBridgeEvent]{
		list:  func(e events.EventBridgeEvent) []events.EventBridgeEvent { return []events.EventBridgeEvent{e} },
		read:  eventBridgeMessage,
		lasts: true,
	}, h, optFns))
}

func eventBridgeMessage(e events.EventBridgeEvent) message {
	return message{name: e.ID, source: PrincipalOf(busOperation, e.Region, e.AccountID, e.Source, e.DetailType), id: e.ID,
		body: e.Detail, parts: busParts(e.Source, e.DetailType, e.AccountID, e.Region, e.Resources), form: []string{"event"},
		sent: keyInDetail(e.Detail)}
}

// busOperation begins the default Operation of an event. Nothing else that a source
// names begins so: those are ARNs.
const busOperation = "events"

// busParts returns what an event says besides its detail.
func busParts(source, detailType, account, region string, resources []string) []string {
	return append([]string{source, detailType, account, region, strconv.Itoa(len(resources))}, resources...)
}

// keyInDetail returns the key that a member of the detail carries. A null is no key, as
// if the member were absent. A member that is there twice, in any capitalization, is an
// invalid key, because readers of JSON disagree about which of the two counts.
func keyInDetail(detail json.RawMessage) key {
	var k key
	found := false
	for name, value := range members(detail) {
		if !strings.EqualFold(name, MessageKey) {
			continue
		}
		if found {
			return key{given: true, err: fmt.Errorf("the detail has the member %s twice", MessageKey)}
		}
		found = true
		var text *string
		switch err := json.Unmarshal(value, &text); {
		case err != nil:
			k = key{given: true, err: fmt.Errorf("the member %s of the detail is not a string", name)}
		case text != nil:
			k = key{given: true, text: *text}
		}
	}
	return k
}

// members returns those of a JSON object, in their order, each as often as it is there.
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
