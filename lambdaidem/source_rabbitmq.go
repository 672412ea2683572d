package lambdaidem

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"
)

// RabbitMQ guards a handler of messages from a RabbitMQ queue on Amazon MQ. For failures, retries,
// order and waiting, see [Guard.ActiveMQ].
//
// The default key is the message's header [MessageKey], else the property message_id. A RabbitMQ
// broker gives messages no ids, so publishers must set one of these. Otherwise derive the key from
// the message with BatchOptions.Key. A message without a key fails with [ErrKeyMissing], or runs
// unguarded if Options.KeyOptional is set.
//
// Publishers must give each message of the queue a key of its own. A message with the key of an
// earlier message counts as a duplicate if it has the same data. Otherwise it is refused.
//
// The default BatchOptions.Operation is "rabbitmq:BROKER|QUEUE::HOST", where BROKER is the ARN of
// the broker and HOST the virtual host. BatchOptions.FingerprintAttributes lists the names of
// message headers.
func (g *Guard) RabbitMQ(h func(context.Context, events.RabbitMQMessage) error, optFns ...func(*BatchOptions[events.RabbitMQMessage])) func(context.Context, events.RabbitMQEvent) error {
	return wholeEvent(guardMessages(g, source[events.RabbitMQEvent, events.RabbitMQMessage]{
		list:           func(e events.RabbitMQEvent) []events.RabbitMQMessage { return listByList(e.MessagesByQueue) },
		convert:        rabbitMQMessage,
		limitedRetries: true,
	}, h, optFns))
}

// rabbitMQMessage converts a message. A message does not name its queue, so rabbitMQMessage sets
// the message's source (its broker and queue) only if the event has messages of a single queue.
// That is the usual case, because an event source mapping reads a single queue.
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
		if !m.senderKey.isSet {
			m.senderKey = key{text: *id, isSet: true}
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
