package lambdaidem

import (
	"bytes"
	"encoding/json"
	"slices"
)

// unwrap reads a message that a topic or a bus put on a queue. The sender's key and
// message are inside of an envelope, and each publication has a new envelope with ids
// and signatures of its own, which must not count (Amazon SNS, "Fanout to Amazon SQS
// queues"; Amazon EventBridge, "Event structure"). The source's own id stays the
// queue's, because a sender can't choose it. A body with a member that no envelope has
// is a message by itself, and counts whole.
func (m *message) unwrap() {
	if m.sent.given || len(m.body) == 0 || m.body[0] != '{' {
		return
	}
	switch {
	case bytes.Contains(m.body, []byte(`"TopicArn"`)) && hasOnly(m.body, envelopeOfSNS):
		m.unwrapSNS()
	case bytes.Contains(m.body, []byte(`"detail-type"`)) && hasOnly(m.body, envelopeOfEventBridge):
		m.unwrapEventBridge()
	}
}

// The members of the envelopes.
var (
	envelopeOfSNS = []string{"Type", "MessageId", "SequenceNumber", "TopicArn", "Subject", "Message", "Timestamp",
		"SignatureVersion", "Signature", "SigningCertURL", "UnsubscribeURL", "MessageAttributes"}
	envelopeOfEventBridge = []string{"version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail", "replay-name"}
)

// hasOnly reports whether a JSON object has members, all of them named, each once.
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

// unwrapSNS reads the message of a topic without raw message delivery: its body, its
// subject and its attributes are inside of the envelope.
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
	m.body, m.parts = []byte(*e.Message), append(m.parts, "SNS", e.TopicArn, e.Subject)
	for name, a := range e.MessageAttributes {
		m.attribute(name, a.Type, a.Value)
	}
}

// unwrapEventBridge reads the event of a rule whose target is the queue.
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
	m.body, m.sent = e.Detail, keyInDetail(e.Detail)
	m.parts = append(append(m.parts, "EventBridge"), busParts(e.Source, e.DetailType, e.Account, e.Region, e.Resources)...)
}
