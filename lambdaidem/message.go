package lambdaidem

import "encoding/base64"

// message is a message or stream record of any event source.
type message struct {
	name      string      // identifies the message in the response, such as the itemIdentifier of SQS
	source    string      // ARN of the queue, topic or stream, or a similar name for EventBridge and Kafka; the default of BatchOptions.Operation
	group     string      // messages of one group must run in order; "" if order does not matter
	senderKey key         // the idempotency key that the sender gave, such as an attribute named MessageKey
	id        string      // the id that the source gave, the same in each delivery
	body      []byte      // the body or detail
	parts     []string    // values that the fingerprint covers besides the body, such as the group or an SNS subject
	form      []string    // names of the values in parts, and of the envelopes that were unwrapped; see payload.form
	attrs     []attribute // message attributes, headers or properties
}

// attribute is a message attribute of SQS or SNS, a header of Kafka or RabbitMQ, or a property of
// ActiveMQ. Headers and properties that are text have type String.
type attribute struct{ name, dataType, value string }

// setData decodes data from base64 and sets the message's body to the result. If data is not valid
// base64, the body is nil, and the fingerprint covers data as text.
func (m *message) setData(data string) {
	var err error
	if m.body, err = base64.StdEncoding.DecodeString(data); err != nil { // Lambda sends no such data
		m.body, m.parts = nil, append(m.parts, data)
	}
}
