package queue

import (
	"cmp"
	"container/list"
	"maps"
	"strconv"
	"time"
)

// Queue is one queue of a Service.
type Queue struct {
	service *Service
	serial  uint64 // in receipt handles: a new queue of the same name is another
	name    string
	fifo    bool
	created time.Time

	// Guarded by service.mu.
	settings settings
	modified time.Time
	deleted  bool
	purged   time.Time
	messages *list.List               // of *message, in the order of arrival
	bySerial map[uint64]*list.Element // of messages
	flight   map[uint64]*message      // those received here; some may be visible again
	buried   map[uint64]bool          // serials that went to the dead-letter queue
	dedup    deduplication
	tasks    []MoveTask
	changed  chan struct{} // closed, and replaced, when a receive may find more
}

func newQueue(s *Service, name string, settings settings, now time.Time) *Queue {
	q := &Queue{service: s, serial: s.next(), name: name, fifo: settings.fifo, created: now, modified: now, settings: settings}
	q.changed = make(chan struct{})
	q.clear()
	return q
}

// clear forgets all messages, and no deduplication ID.
func (q *Queue) clear() {
	q.messages = list.New()
	q.bySerial = map[uint64]*list.Element{}
	q.flight = map[uint64]*message{}
	q.buried = map[uint64]bool{}
}

// Name is the queue's name.
func (q *Queue) Name() string { return q.name }

// ARN is the queue's Amazon Resource Name.
func (q *Queue) ARN() string { return q.service.arn(q.name) }

// FIFO says that it is a FIFO queue.
func (q *Queue) FIFO() bool { return q.fifo }

// URL is the queue URL, below Options.BaseURL.
func (q *Queue) URL() string {
	return q.url(cmp.Or(q.service.options.BaseURL, "http://localhost"))
}

func (q *Queue) url(base string) string {
	return base + "/" + q.service.options.AccountID + "/" + q.name
}

// enter takes the lock, unless the queue or its service has ended.
func (q *Queue) enter() error {
	q.service.mu.Lock()
	switch {
	case q.service.closed:
		q.service.mu.Unlock()
		return ErrClosed
	case q.deleted:
		q.service.mu.Unlock()
		return noSuchQueue()
	}
	return nil
}

// wake lets every waiting receive look again.
func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Depth counts messages.
type Depth struct {
	// Visible messages can be received. Those of a FIFO queue whose group waits
	// for another message count too.
	Visible int
	// InFlight messages are within their visibility timeouts.
	InFlight int
	// Delayed messages have not come to the end of their delays.
	Delayed int
}

// Depth counts the queue's messages. A closed or deleted queue has none.
func (q *Queue) Depth() Depth {
	if q.enter() != nil {
		return Depth{}
	}
	defer q.service.mu.Unlock()
	return q.depth(time.Now())
}

func (q *Queue) depth(now time.Time) Depth {
	var d Depth
	for e := q.messages.Front(); e != nil; {
		m := at(e)
		next := e.Next()
		switch {
		case q.expired(m, now):
			q.remove(e)
		case m.inFlight(now):
			d.InFlight++
		case now.Before(m.availableAt(q.settings)):
			d.Delayed++
		default:
			d.Visible++
		}
		e = next
	}
	return d
}

func at(e *list.Element) *message {
	m, _ := e.Value.(*message) // the list has nothing else
	return m
}

// expired says that a message has been kept for the retention period. A shorter
// period holds for what is there already ("SetQueueAttributes").
func (q *Queue) expired(m *message, now time.Time) bool {
	return now.Sub(m.sent) >= q.settings.seconds(attrRetention)
}

func (q *Queue) append(m *message) {
	q.bySerial[m.serial] = q.messages.PushBack(m)
	q.wake()
}

func (q *Queue) remove(e *list.Element) *message {
	m, _ := q.messages.Remove(e).(*message)
	delete(q.bySerial, m.serial)
	delete(q.flight, m.serial)
	return m
}

// Attributes returns all attributes as GetQueueAttributes does for All.
func (q *Queue) Attributes() (map[string]string, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.service.mu.Unlock()
	d := q.depth(time.Now())
	all := maps.Clone(q.settings.values)
	all["QueueArn"] = q.ARN()
	all["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	all["LastModifiedTimestamp"] = strconv.FormatInt(q.modified.Unix(), 10)
	all["ApproximateNumberOfMessages"] = strconv.Itoa(d.Visible)
	all["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(d.InFlight)
	all["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(d.Delayed)
	return all, nil
}

// SetAttributes changes attributes, all of them or, with an error, none. They
// hold at once; AWS takes up to 15 minutes.
func (q *Queue) SetAttributes(attributes map[string]string) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.service.mu.Unlock()
	changed, err := q.service.apply(q.settings, attributes, false)
	if err != nil {
		return err
	}
	if changed.redrive != nil && changed.redrive.Target == q.ARN() {
		return badValue(attributes[attrRedrive], attrRedrive, "A queue can't be its own dead-letter queue.")
	}
	q.settings, q.modified = changed, time.Now()
	q.wake() // a delay may be shorter now
	return nil
}

// VisibilityTimeout is the queue's: what a poller compares with its function's
// timeout.
func (q *Queue) VisibilityTimeout() time.Duration {
	q.service.mu.Lock()
	defer q.service.mu.Unlock()
	return q.settings.seconds(attrVisibility)
}

// purgeAgainAfter is how long PurgeQueue refuses to be called again.
const purgeAgainAfter = 60 * time.Second

// Purge deletes all messages, also those in flight; AWS takes up to a minute.
// A second purge within 60 seconds is PurgeQueueInProgress.
func (q *Queue) Purge() error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.service.mu.Unlock()
	now := time.Now()
	if !q.purged.IsZero() && now.Sub(q.purged) < purgeAgainAfter {
		return purgeQueueInProgress.error("Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
	}
	q.purged = now
	q.clear()
	return nil
}

// DeleteQueue deletes the queue with its messages; receives that wait on it get
// QueueDoesNotExist. Its name can be used again after 60 seconds.
func (q *Queue) DeleteQueue() error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.service.mu.Unlock()
	q.deleted = true
	delete(q.service.queues, q.name)
	q.service.deleted[q.name] = time.Now()
	q.clear()
	q.wake()
	return nil
}
