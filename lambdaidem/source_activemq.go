package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// ActiveMQ guards a handler of messages from an ActiveMQ queue on Amazon MQ. If a message fails,
// the returned function returns an error, which is a *[BatchError] if the event has several
// messages. Lambda then delivers the whole batch again, until it succeeds or the messages expire
// (AWS Lambda, "Using Lambda with Amazon MQ"). The handler does not run again for messages that it
// has handled.
//
// After a message has failed, the handler still runs for the later messages of the batch. To keep
// the order of the queue instead, set BatchOptions.StopBatch. If another invocation is still
// handling a message, the batch waits for that invocation; see [Guard.Kinesis].
//
// The default key is the message's property [MessageKey], else the message's JMSMessageID. The
// default BatchOptions.Operation is "activemq:BROKER|QUEUE", where BROKER is the ARN of the broker.
// BatchOptions.FingerprintAttributes lists the names of message properties.
func (g *Guard) ActiveMQ(h func(context.Context, events.ActiveMQMessage) error, optFns ...func(*BatchOptions[events.ActiveMQMessage])) func(context.Context, events.ActiveMQEvent) error {
	return wholeEvent(guardMessages(g, source[events.ActiveMQEvent, events.ActiveMQMessage]{
		list:           func(e events.ActiveMQEvent) []events.ActiveMQMessage { return e.Messages },
		convert:        activeMQMessage,
		limitedRetries: true,
	}, h, optFns))
}

func activeMQMessage(e events.ActiveMQEvent, r events.ActiveMQMessage) message {
	m := message{name: r.MessageID, id: r.MessageID}
	if e.EventSourceARN != "" && r.Destination.PhysicalName != "" {
		m.source = PrincipalOf("activemq", e.EventSourceARN, r.Destination.PhysicalName)
	}
	m.setData(r.Data)
	for name, value := range r.Properties {
		m.attribute(name, "String", value)
	}
	return m
}
