package lambdaidem

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"
)

// ActiveMQ guards a handler of the messages of a queue of an Amazon MQ broker for ActiveMQ. Lambda
// takes no list of failures for this source: if a message fails, the function returns an error,
// which is a *[BatchError] for several messages, and Lambda delivers the whole batch again, until
// it succeeds or the messages expire (AWS Lambda, "Using Lambda with Amazon MQ"). The handler does
// not run again for messages that it has already handled.
//
// After a message has failed, later messages of the batch begin. To keep the order of the queue,
// set BatchOptions.StopBatch. If another invocation is still handling a message, the batch waits
// for it, as for [Guard.Kinesis].
//
// The default key is the message's property [MessageKey], else the message's JMSMessageID. The
// default BatchOptions.Operation is "activemq:BROKER|QUEUE", where BROKER is the ARN of the broker.
// BatchOptions.FingerprintAttributes names properties.
func (g *Guard) ActiveMQ(h func(context.Context, events.ActiveMQMessage) error, optFns ...func(*BatchOptions[events.ActiveMQMessage])) func(context.Context, events.ActiveMQEvent) error {
	return wholeEvent(guardMessages(g, source[events.ActiveMQEvent, events.ActiveMQMessage]{
		list:           func(e events.ActiveMQEvent) []events.ActiveMQMessage { return e.Messages },
		read:           activeMQMessage,
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

// RabbitMQ guards a handler of the messages of a queue of an Amazon MQ broker for RabbitMQ.
// Failures, retries, order and waiting are as for [Guard.ActiveMQ].
//
// A RabbitMQ broker gives messages no ids. The default key is the message's header [MessageKey],
// else the property message_id, which the publisher may set. The publisher must give each message of
// the queue an id of its own: a second message with the same id and data does not run, and one with
// other data is refused. A message with neither has no key: it fails with [ErrKeyMissing], or runs
// unguarded if Options.KeyOptional is set. Let publishers set one of the two, or derive the key from
// the message with BatchOptions.Key.
//
// The default BatchOptions.Operation is "rabbitmq:BROKER|QUEUE::HOST", where BROKER is the ARN of
// the broker and HOST the virtual host. BatchOptions.FingerprintAttributes names headers.
func (g *Guard) RabbitMQ(h func(context.Context, events.RabbitMQMessage) error, optFns ...func(*BatchOptions[events.RabbitMQMessage])) func(context.Context, events.RabbitMQEvent) error {
	return wholeEvent(guardMessages(g, source[events.RabbitMQEvent, events.RabbitMQMessage]{
		list:           func(e events.RabbitMQEvent) []events.RabbitMQMessage { return listByList(e.MessagesByQueue) },
		read:           rabbitMQMessage,
		limitedRetries: true,
	}, h, optFns))
}

// rabbitMQMessage converts a message. Its source is known only if the event has a single queue,
// because a message does not name its queue. An event source mapping reads a single queue.
func rabbitMQMessage(e events.RabbitMQEvent, r events.RabbitMQMessage) message {
	var m message
	if e.EventSourceARN != "" && len(e.MessagesByQueue) == 1 {
		for queue := range e.MessagesByQueue {
			m.source = PrincipalOf("rabbitmq", e.EventSourceARN, queue)
		}
	}
	m.setData(r.Data)
	for name, value := range r.BasicProperties.Headers {
		if text, ok := rabbitMQText(value); ok {
			m.attribute(name, "String", text)
		} else {
			m.attribute(name, "", jsonText(value))
		}
	}
	if id := r.BasicProperties.MessageID; id != nil {
		m.name = *id
		if !m.sent.given {
			m.sent = key{text: *id, given: true}
		}
	}
	return m
}

// rabbitMQText returns the text of a header. Lambda encodes a text as an object with a list of
// signed bytes: {"bytes": [118, 97]}. ok is false if the header is of another type.
func rabbitMQText(header any) (text string, ok bool) {
	if text, ok = header.(string); ok {
		return text, true
	}
	object, _ := header.(map[string]any)
	if _, ok = object["bytes"].([]any); !ok {
		return "", false
	}
	var decoded struct{ Bytes events.JSONNumberBytes }
	if err := json.Unmarshal([]byte(jsonText(object)), &decoded); err != nil {
		return "", false
	}
	return string(decoded.Bytes), true
}

// setData decodes the data of a message, which is base64, and sets the message's body to the
// result. If the data is not base64, the body is nil, and the fingerprint covers the data as text.
func (m *message) setData(data string) {
	var err error
	if m.body, err = base64.StdEncoding.DecodeString(data); err != nil { // Lambda sends no such data
		m.body, m.parts = nil, append(m.parts, data)
	}
}
