package lambdaidem

import (
	"context"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
)

// EventBridge guards a handler of EventBridge events. Lambda invokes the function asynchronously,
// at least once for each event. For retries and waiting, see [Guard.SNS]. If several rules match an
// event, the function receives the event several times with the same id, and the handler runs once.
//
// The default BatchOptions.Operation is "events:REGION|ACCOUNT|SOURCE|TYPE". The sender of an event
// chooses SOURCE, the event's source, and TYPE, its detail type, but not REGION and ACCOUNT.
func (g *Guard) EventBridge(h func(context.Context, events.EventBridgeEvent) error, optFns ...func(*BatchOptions[events.EventBridgeEvent])) func(context.Context, events.EventBridgeEvent) error {
	return wholeEvent(guardMessages(g, source[events.EventBridgeEvent, events.EventBridgeEvent]{
		list:           func(e events.EventBridgeEvent) []events.EventBridgeEvent { return []events.EventBridgeEvent{e} },
		convert:        eventBridgeMessage,
		limitedRetries: true,
	}, h, optFns))
}

func eventBridgeMessage(_, e events.EventBridgeEvent) message {
	return message{name: e.ID, source: PrincipalOf(busOperation, e.Region, e.AccountID, e.Source, e.DetailType), id: e.ID,
		body: e.Detail, parts: busParts(e.Source, e.DetailType, e.AccountID, e.Region, e.Resources), form: []string{"event"},
		senderKey: keyInJSON(e.Detail)}
}

// busOperation is the prefix of the default operation of EventBridge events. It distinguishes
// these operations from those of all other sources, whose default operation is an ARN.
const busOperation = "events"

// busParts returns what the fingerprint of an event covers besides its detail.
func busParts(source, detailType, account, region string, resources []string) []string {
	return append([]string{source, detailType, account, region, strconv.Itoa(len(resources))}, resources...)
}
