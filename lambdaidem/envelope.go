package lambdaidem

import (
	"bytes"
	"encoding/json"
	"slices"
)

// unwrap handles an SQS message whose body is an envelope of SNS or EventBridge around the sender's
// body. unwrap sets the message's body to the sender's body, and takes the sender's idempotency key
// from the envelope. If the message's own attributes have a key, or the body is not an envelope,
// unwrap changes nothing.
//
// Without unwrap, the fingerprint would cover the envelope's ids, times and signatures, which
// differ each time the sender publishes the same message (Amazon SNS, "Fanout to Amazon SQS
// queues"; Amazon EventBridge, "Event structure").
func (m *message) unwrap() {
	if m.senderKey.isSet || len(m.body) == 0 || m.body[0] != '{' {
		return
	}
	// The default key remains the id that SQS gave the message. The id in the envelope is not safe:
	// any sender can write an envelope with another message's id.
	switch {
	case bytes.Contains(m.body, []byte(`"TopicArn"`)) && hasOnly(m.body, envelopeOfSNS):
		m.unwrapSNS()
	case bytes.Contains(m.body, []byte(`"detail-type"`)) && hasOnly(m.body, envelopeOfEventBridge):
		m.unwrapEventBridge()
	}
}

// The names of all members that an envelope of SNS or EventBridge can have. A body with any
// other member is not an envelope, and unwrap leaves it as it is.
var (
	envelopeOfSNS = []string{"Type", "MessageId", "SequenceNumber", "TopicArn", "Subject", "Message", "Timestamp",
		"SignatureVersion", "Signature", "SigningCertURL", "UnsubscribeURL", "MessageAttributes"}
	envelopeOfEventBridge = []string{"version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail", "replay-name"}
)

// hasOnly reports whether a JSON object has at least one member, has no member twice, and has
// only members whose names are in names.
func hasOnly(object []byte, names []string) bool {
	seen := make(map[string]bool, len(names))
	for name := range members(object) {
		if seen[name] || !slices.Contains(names, name) {
			return false
		}
		seen[name] = true
	}
	return len(seen) > 0
}

// unwrapSNS unwraps m if its body is the envelope of a message from an SNS topic without raw
// message delivery. The envelope's Message becomes the body of m. The envelope's message attributes
// become attributes of m, and may contain the sender's key. The fingerprint also covers the topic
// and the subject.
func (m *message) unwrapSNS() {
	var e struct {
		Type, TopicArn    string
		Subject           string
		ID                string `json:"MessageId"`
		Message           *string
		MessageAttributes map[string]struct{ Type, Value string }
	}
	if json.Unmarshal(m.body, &e) != nil || e.Type != "Notification" || e.ID == "" || e.TopicArn == "" || e.Message == nil {
		return
	}
	m.body, m.parts, m.form = []byte(*e.Message), append(m.parts, "SNS", e.TopicArn, e.Subject), append(m.form, "SNS")
	for name, a := range e.MessageAttributes {
		m.attribute(name, a.Type, a.Value)
	}
}

// unwrapEventBridge unwraps m if its body is an event that an EventBridge rule has sent to the
// queue. The event's detail becomes the body of m, and may contain the sender's key. The
// fingerprint also covers the event's source, detail type, account, region and resources.
func (m *message) unwrapEventBridge() {
	var e struct {
		ID, Source, Account, Region, Time string
		DetailType                        string `json:"detail-type"`
		Resources                         []string
		Detail                            json.RawMessage
	}
	if json.Unmarshal(m.body, &e) != nil || e.ID == "" || e.Source == "" || e.DetailType == "" || e.Time == "" || len(e.Detail) == 0 {
		return
	}
	m.body, m.senderKey, m.form = e.Detail, keyInJSON(e.Detail), append(m.form, "EventBridge")
	m.parts = append(append(m.parts, "EventBridge"), busParts(e.Source, e.DetailType, e.Account, e.Region, e.Resources)...)
}
