package queue

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"time"
)

// Send puts a message into the queue. A duplicate in a FIFO queue is accepted
// and not delivered: it gets the first one's MessageID and SequenceNumber.
func (q *Queue) Send(o Outgoing) (Sent, error) {
	if err := q.enter(); err != nil {
		return Sent{}, err
	}
	defer q.service.mu.Unlock()
	return q.send(o)
}

func (q *Queue) send(o Outgoing) (Sent, error) {
	if err := o.check(q.fifo); err != nil {
		return Sent{}, err
	}
	if most := q.settings.number(attrMaxSize); o.size() > most {
		return Sent{}, invalidParameterValue.error("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
	}
	if err := q.checkFIFO(o); err != nil {
		return Sent{}, err
	}
	now := time.Now()
	sent := Sent{
		MD5OfBody:             md5Hex([]byte(o.Body)),
		MD5OfAttributes:       md5OfAttributes(o.Attributes),
		MD5OfSystemAttributes: md5OfTrace(o.TraceHeader),
	}
	m := &message{
		serial:     q.service.next(),
		id:         newID(),
		body:       o.Body,
		attributes: maps.Clone(o.Attributes),
		trace:      o.TraceHeader,
		group:      o.GroupID,
		sent:       now,
	}
	if q.fifo {
		m.dedup, m.sequence = q.dedupID(o), sequence(m.serial)
		first, duplicate := q.dedup.admit(q.dedupKey(m), accepted{m.id, m.sequence, now})
		sent.MessageID, sent.SequenceNumber = first.id, first.sequence
		if duplicate {
			q.accepted(o, true)
			return sent, nil
		}
	} else {
		sent.MessageID = m.id
		m.delay = q.settings.seconds(attrDelay)
		if o.Delay != nil {
			m.delay = *o.Delay
		}
	}
	q.append(m)
	q.accepted(o, false)
	return sent, nil
}

func (q *Queue) accepted(o Outgoing, duplicate bool) {
	if tell := q.service.options.Accepted; tell != nil {
		tell(q.name, o, duplicate)
	}
}

// checkFIFO holds what a FIFO queue needs beyond Outgoing.check. A batch with
// such an entry is refused as a whole.
func (q *Queue) checkFIFO(o Outgoing) *Error {
	switch {
	case !q.fifo:
		return nil
	case o.GroupID == "":
		return missing("MessageGroupId")
	case q.dedupID(o) == "":
		return invalidParameterValue.error("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

// dedupID is the message's own, or with ContentBasedDeduplication the SHA-256
// of its body, "but not the attributes of the message" ("SendMessage").
func (q *Queue) dedupID(o Outgoing) string {
	if o.DeduplicationID != "" || q.settings.values[attrContentDedup] != "true" {
		return o.DeduplicationID
	}
	sum := sha256.Sum256([]byte(o.Body))
	return hex.EncodeToString(sum[:])
}

// dedupKey is what must be unique: the ID in the queue, or in the group with
// DeduplicationScope messageGroup.
func (q *Queue) dedupKey(m *message) dedupKey {
	if q.settings.values[attrDedupScope] == "messageGroup" {
		return dedupKey{m.dedup, m.group}
	}
	return dedupKey{m.dedup, ""}
}

func md5OfTrace(header string) string {
	if header == "" {
		return ""
	}
	return md5OfAttributes(map[string]Attribute{"AWSTraceHeader": {DataType: "String", StringValue: header}})
}

// sequence is 20 digits, growing and "non-consecutive" ("Amazon SQS FIFO queue
// and message identifiers").
func sequence(serial uint64) string { return fmt.Sprintf("188%017d", serial<<8) }

func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// dedupInterval is how long a deduplication ID is remembered, from the message
// that was accepted under it, whatever became of that ("Amazon SQS continues to
// keep track of the message deduplication ID even after the message is received
// and deleted").
const dedupInterval = 5 * time.Minute

type dedupKey struct{ id, group string }

// accepted is a message that made its deduplication ID known.
type accepted struct {
	id, sequence string
	at           time.Time
}

// deduplication remembers the deduplication IDs of the last five minutes.
type deduplication struct {
	known map[dedupKey]accepted
	order []dedupKey // by time
}

// admit returns the first message that was accepted under a key within the
// interval; that is the new one, unless it is a duplicate.
func (d *deduplication) admit(key dedupKey, now accepted) (first accepted, duplicate bool) {
	for len(d.order) > 0 && now.at.Sub(d.known[d.order[0]].at) >= dedupInterval {
		delete(d.known, d.order[0])
		d.order = d.order[1:]
	}
	if first, ok := d.known[key]; ok {
		return first, true
	}
	if d.known == nil {
		d.known = map[dedupKey]accepted{}
	}
	d.known[key] = now
	d.order = append(d.order, key)
	return now, false
}
