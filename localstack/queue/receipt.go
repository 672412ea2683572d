package queue

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// maxVisibility is how long a message can be hidden, from its receive on
// ("Amazon SQS visibility timeout").
const maxVisibility = 12 * time.Hour

// handle is what is in a receipt handle: "the act of receiving the message, not
// the message itself" ("Amazon SQS queue and message identifiers").
type handle struct {
	queue, message uint64
	receipt        int
}

const handlePrefix = "AQEB"

func (h handle) String() string {
	return handlePrefix + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%020d/%020d/%08d", h.queue, h.message, h.receipt))
}

func parseHandle(s string) (h handle, ok bool) {
	encoded, found := strings.CutPrefix(s, handlePrefix)
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if !found || err != nil {
		return h, false
	}
	if _, err := fmt.Sscanf(string(text), "%020d/%020d/%08d", &h.queue, &h.message, &h.receipt); err != nil {
		return h, false
	}
	return h, h.String() == s
}

// held finds the message of a receipt handle; nil where it is gone.
func (q *Queue) held(receipt string) (h handle, m *message, err error) {
	if receipt == "" {
		return h, nil, missing("ReceiptHandle")
	}
	h, ok := parseHandle(receipt)
	if !ok {
		return h, nil, receiptHandleIsInvalid.error("The input receipt handle is invalid.")
	}
	if h.queue != q.serial {
		return h, nil, receiptHandleIsInvalid.error("The receipt handle %q is not valid for this queue.", receipt)
	}
	if e := q.bySerial[h.message]; e != nil {
		m = at(e)
	}
	return h, m, nil
}

// Delete deletes the message of a receipt handle. A message that is gone
// already is no error.
//
// A handle that is not the last one of its message does nothing on a standard
// queue, without an error: "the request will succeed, but the message might not
// be deleted" ("DeleteMessage"). On a FIFO queue it is an error, as is a handle
// whose visibility timeout has ended ("ReceiveMessage", at
// ReceiveRequestAttemptId): the message is, or may be, someone else's now.
func (q *Queue) Delete(receipt string) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.service.mu.Unlock()
	return q.delete(receipt)
}

func (q *Queue) delete(receipt string) error {
	h, m, err := q.held(receipt)
	if err != nil {
		return err
	}
	if q.fifo {
		if q.buried[h.message] || m != nil && (m.receipt != h.receipt || !m.inFlight(time.Now())) {
			return errExpired(receipt)
		}
	}
	if m == nil || m.receipt != h.receipt {
		return nil
	}
	q.remove(q.bySerial[h.message])
	q.wake() // its group may go on
	return nil
}

// errExpired is what a FIFO queue says of a receipt that holds no longer.
func errExpired(receipt string) *Error {
	return badValue(receipt, "ReceiptHandle", reasonExpired)
}

const reasonExpired = "The receipt handle has expired."

// ChangeVisibility ends a message's visibility timeout after d from now; 0 gives
// the message back at once. Lambda's event source mapping doesn't do that with
// what failed: it leaves it to its visibility timeout.
//
// Over 12 hours from the receive is an error. A message that is visible again
// stays so: MessageNotInflight.
func (q *Queue) ChangeVisibility(receipt string, d time.Duration) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.service.mu.Unlock()
	return q.changeVisibility(receipt, d)
}

func (q *Queue) changeVisibility(receipt string, d time.Duration) error {
	h, m, err := q.held(receipt)
	if err != nil {
		return err
	}
	if d < 0 || d > maxVisibility {
		return outOfRange(d.Seconds(), attrVisibility, 0, 43_200)
	}
	if m == nil || m.receipt != h.receipt {
		return badValue(receipt, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	}
	now := time.Now()
	if !m.inFlight(now) {
		return messageNotInflight.error("The specified message isn't in flight.")
	}
	until := now.Add(d)
	if until.Sub(m.received) > maxVisibility {
		return badValue(d.Seconds(), attrVisibility, "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
	}
	m.hiddenUntil = until
	q.wake() // a waiting receive may have to look earlier
	return nil
}
