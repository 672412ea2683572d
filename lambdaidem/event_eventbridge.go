package lambdaidem

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// EventBridge guards a handler of EventBridge events (V2). They come one at a time,
// asynchronously, at least once; what is said at [Guard.SNS] of retries and waiting
// holds here too. Several rules that match one event deliver it several times, under
// one id: it runs once.
func (g *Guard) EventBridge(h func(context.Context, events.EventBridgeEvent) error, optFns ...func(*BatchOptions[events.EventBridgeEvent])) func(context.Context, events.EventBridgeEvent) error {
	return asynchronous(guardMessages(g, source[events.EventBridgeEvent, events.EventBridgeEvent]{
		list:  func(e events.EventBridgeEvent) []events.EventBridgeEvent { return []events.EventBridgeEvent{e} },
		read:  eventBridgeMessage,
		lasts: true,
	}, h, optFns))
}

func eventBridgeMessage(e events.EventBridgeEvent) message {
	parts := append([]string{e.Source, e.DetailType, strconv.Itoa(len(e.Resources))}, e.Resources...)
	return message{name: e.ID, source: e.Source, id: e.ID, body: e.Detail, parts: parts, sent: keyInDetail(e.Detail)}
}

// keyInDetail is the member of the detail that carries a key. Where readers of JSON
// would disagree about it, it is none.
func keyInDetail(detail json.RawMessage) key {
	var members map[string]json.RawMessage
	if json.Unmarshal(detail, &members) != nil {
		return key{}
	}
	text, given := members[MessageKey]
	if !given {
		return key{}
	}
	k := key{given: true}
	if _, ok := canon.Append(nil, detail, canon.Limits{Bytes: math.MaxInt32, Depth: 10_000, Members: math.MaxInt32}); !ok {
		k.err = fmt.Errorf("the detail has the member %s, and is JSON that readers disagree about", MessageKey)
		return k
	}
	var value *string
	if err := json.Unmarshal(text, &value); err != nil || value == nil {
		k.err = fmt.Errorf("the member %s of the detail is no string", MessageKey)
		return k
	}
	k.text = *value
	return k
}
