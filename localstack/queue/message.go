package queue

import (
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxMessageBytes is the most that one message, or one batch, can have ("Amazon
// SQS message quotas": 1 MiB since August 2025).
const maxMessageBytes = 1 << 20

// Attribute is one message attribute, as it is on the wire too.
type Attribute struct {
	// DataType is String, Number or Binary, and can have a label, as in
	// Number.int.
	DataType string `json:"DataType"`
	// StringValue is the value of a String or Number.
	StringValue string `json:"StringValue,omitempty"`
	// BinaryValue is the value of a Binary.
	BinaryValue []byte `json:"BinaryValue,omitempty"`
}

// Outgoing is a message to send.
type Outgoing struct {
	Body       string
	Attributes map[string]Attribute
	// TraceHeader is the message system attribute AWSTraceHeader.
	TraceHeader string
	// GroupID is the MessageGroupId, which a FIFO queue needs.
	GroupID string
	// DeduplicationID is the MessageDeduplicationId of a FIFO queue. Default, with
	// ContentBasedDeduplication: the SHA-256 of the body.
	DeduplicationID string
	// Delay is this message's own, up to 15 minutes in whole seconds; not for
	// FIFO queues. Default: the queue's DelaySeconds.
	Delay *time.Duration
}

// Sent is what the queue says of a message that it has taken.
type Sent struct {
	MessageID             string
	MD5OfBody             string
	MD5OfAttributes       string // empty without attributes
	MD5OfSystemAttributes string // empty without a trace header
	SequenceNumber        string // of a FIFO queue
}

// Message is a message as one receive delivers it.
type Message struct {
	ID string
	// ReceiptHandle is this receive's own: Delete and ChangeVisibility take it.
	ReceiptHandle   string
	Body            string
	MD5OfBody       string
	Attributes      map[string]Attribute
	MD5OfAttributes string // over all of Attributes; empty without any
	// System are the message system attributes by their AWS names:
	// ApproximateReceiveCount, SentTimestamp, SenderId,
	// ApproximateFirstReceiveTimestamp; where they apply SequenceNumber,
	// MessageGroupId, MessageDeduplicationId, AWSTraceHeader and
	// DeadLetterQueueSourceArn. Times are epoch milliseconds.
	System map[string]string
	// QueueARN is the queue that delivered it.
	QueueARN string
}

// senderID stands for the caller: nobody is authenticated here.
const senderID = "AIDALOCALLOCALLOCAL00"

// message is a message in a queue.
type message struct {
	serial     uint64 // its own; a copy made by Faults shares id, not serial
	copied     bool
	id         string
	body       string
	attributes map[string]Attribute
	trace      string
	group      string
	dedup      string
	sequence   string
	source     string // in a dead-letter queue: the ARN of the queue it came from

	sent          time.Time // SentTimestamp; retention counts from here
	delay         time.Duration
	firstReceived time.Time
	receives      int // over all queues

	// receipt numbers the receives from this queue; 0: there was none.
	receipt     int
	received    time.Time // the last one
	hiddenUntil time.Time // end of its visibility timeout
}

// availableAt is when a message can be received next, for all that its own
// state says.
func (m *message) availableAt(s settings) time.Time {
	switch {
	case m.receipt > 0:
		return m.hiddenUntil
	case s.fifo:
		// "For FIFO queues, the per-queue delay setting is retroactive" ("Amazon SQS
		// delay queues").
		return m.sent.Add(s.seconds(attrDelay))
	default:
		return m.sent.Add(m.delay)
	}
}

func (m *message) inFlight(now time.Time) bool {
	return m.receipt > 0 && now.Before(m.hiddenUntil)
}

// view is what a receive shows of it.
func (m *message) view(q *Queue) Message {
	system := map[string]string{
		"SenderId":                         senderID,
		"SentTimestamp":                    milliseconds(m.sent),
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"ApproximateFirstReceiveTimestamp": milliseconds(m.firstReceived),
	}
	for name, value := range map[string]string{
		"MessageGroupId":           m.group,
		"MessageDeduplicationId":   m.dedup,
		"SequenceNumber":           m.sequence,
		"AWSTraceHeader":           m.trace,
		"DeadLetterQueueSourceArn": m.source,
	} {
		if value != "" {
			system[name] = value
		}
	}
	return Message{
		ID:              m.id,
		ReceiptHandle:   handle{q.serial, m.serial, m.receipt}.String(),
		Body:            m.body,
		MD5OfBody:       md5Hex([]byte(m.body)),
		Attributes:      maps.Clone(m.attributes),
		MD5OfAttributes: md5OfAttributes(m.attributes),
		System:          system,
		QueueARN:        q.ARN(),
	}
}

func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// check holds what SendMessage asks of a message, but for its size.
func (o Outgoing) check(fifo bool) error {
	if o.Body == "" {
		return missing("MessageBody")
	}
	if !validText(o.Body) {
		return invalidMessageContents.error("Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if !validToken(o.GroupID) {
		return badValue(o.GroupID, "MessageGroupId", tokenReason)
	}
	if !validToken(o.DeduplicationID) {
		return badValue(o.DeduplicationID, "MessageDeduplicationId", tokenReason)
	}
	const notHere = "The request include parameter that is not valid for this queue type."
	if !fifo && o.DeduplicationID != "" {
		return badValue(o.DeduplicationID, "MessageDeduplicationId", notHere)
	}
	if o.Delay != nil {
		seconds := o.Delay.Seconds()
		switch {
		case fifo && seconds != 0:
			return badValue(seconds, attrDelay, notHere)
		case seconds < 0 || seconds > 900:
			return badValue(seconds, attrDelay, "DelaySeconds must be >= 0 and <= 900.")
		}
	}
	return checkAttributes(o.Attributes)
}

// size counts what the quota counts: the body, and name, type and value of each
// attribute. System attributes don't count.
func (o Outgoing) size() int {
	n := len(o.Body)
	for name, a := range o.Attributes {
		n += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
	}
	return n
}

// validText holds the characters that SendMessage allows: XML's.
func validText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	})
}

//nolint:gosec // the ids are no credentials
const tokenReason = "It can only include alphanumeric and punctuation characters. 1 to 128 in length."

// validToken holds what a group, deduplication or attempt id can be; an empty
// one is absent.
func validToken(s string) bool {
	return len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
