package lambdaidem

import (
	"bytes"
	"encoding/json"
)

// unwrap looks into the body of a message that a topic or a bus put on a queue: there
// the sender's key and message are inside of an envelope that is another one each
// time something is published (Amazon SNS, "Fanout to Amazon SQS queues"; Amazon
// EventBridge, "Event structure"). The source's own id stays the queue's, which no
// sender can choose.
func (m *message) unwrap() {
	if m.sent.given || len(m.body) == 0 || m.body[0] != '{' {
		return
	}
	switch {
	case bytes.Contains(m.body, []byte(`"TopicArn"`)):
		m.unwrapSNS()
	case bytes.Contains(m.body, []byte(`"detail-type"`)):
		m.unwrapEventBridge()
	}
}

// unwrapSNS takes the message of a topic without raw message delivery for its own.
func (m *message) unwrapSNS() {
	var e struct {
		Type, TopicArn    string
		ID                string `json:"MessageId"`
		Message           *string
		MessageAttributes map[string]struct{ Type, Value string }
	}
	if json.Unmarshal(m.body, &e) != nil || e.Type != "Notification" || e.ID == "" || e.TopicArn == "" || e.Message == nil {
		return
	}
	m.body, m.parts = []byte(*e.Message), append(m.parts, "SNS", e.TopicArn)
	for name, a := range e.MessageAttributes {
		m.attribute(name, a.Type, a.Value)
	}
}

// unwrapEventBridge takes the event of a rule whose target is the queue.
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
