package queue

import (
	"container/list"
	"encoding/base64"
	"slices"
	"time"
)

// bury moves a message to the dead-letter queue when it would be received from
// here once more than maxReceiveCount allows. It keeps its id and its receive
// count, which is "across all queues" ("ReceiveMessage").
//
// In a standard queue it keeps its time too, so that retention counts from the
// first sending; in a FIFO queue that starts anew ("Setting-up dead-letter queue
// retention in Amazon SQS"), and its deduplication ID becomes its message ID
// ("Learn how to configure a dead-letter queue redrive in Amazon SQS").
func (q *Queue) bury(e *list.Element, now time.Time) bool {
	policy := q.settings.redrive
	if policy == nil || at(e).receipt < policy.MaxReceives {
		return false
	}
	target := q.service.byARN(policy.Target)
	if target == nil { // deleted since
		return false
	}
	m := q.remove(e)
	if q.fifo {
		q.buried[m.serial] = true
	}
	dead := *m
	dead.serial, dead.source = q.service.next(), q.ARN()
	dead.receipt, dead.hiddenUntil = 0, time.Time{}
	if target.fifo {
		dead.sent, dead.dedup, dead.sequence = now, m.id, sequence(dead.serial)
	}
	target.append(&dead)
	return true
}

// MoveTask is one redrive of a dead-letter queue.
type MoveTask struct {
	// Handle is the TaskHandle of StartMessageMoveTask.
	Handle string
	// Source is the ARN of the dead-letter queue.
	Source string
	// Destination is the ARN of the queue that got the messages; empty: each got
	// its own back.
	Destination string
	// Started is when.
	Started time.Time
	// ToMove is how many messages were there to move, Moved how many were.
	ToMove, Moved int
	// Failure says why the task stopped before its end, as FailureReason does:
	// CouldNotDetermineMessageSource, for a message that was sent to the
	// dead-letter queue itself, or AWS.SimpleQueueService.NonExistentQueue.
	Failure string
}

// Redrive moves the visible messages of a dead-letter queue to a destination or,
// if that is nil, back to the queues that they came from, as StartMessageMoveTask
// does; but it is done when it returns.
//
// "All redriven messages are considered new messages with a new messageID and
// enqueueTime" ("Learn how to configure a dead-letter queue redrive in Amazon
// SQS"): their receive count starts anew too. Body, attributes, group and
// deduplication ID stay, and no deduplication holds a message back.
func (q *Queue) Redrive(destination *Queue) (MoveTask, error) {
	if err := q.enter(); err != nil {
		return MoveTask{}, err
	}
	defer q.service.mu.Unlock()
	return q.redrive(destination)
}

func (q *Queue) redrive(destination *Queue) (MoveTask, error) {
	if !q.service.isTarget(q) {
		return MoveTask{}, invalidParameterValue.error("Source queue must be configured as a Dead Letter Queue.")
	}
	now := time.Now()
	task := MoveTask{
		Handle:  base64.StdEncoding.EncodeToString([]byte(`{"taskId":"` + newID() + `","sourceArn":"` + q.ARN() + `"}`)),
		Source:  q.ARN(),
		Started: now,
	}
	if destination != nil {
		if destination.deleted || destination.service != q.service {
			return MoveTask{}, resourceNotFound.error("The resource that you specified for the DestinationArn parameter doesn't exist.")
		}
		if destination.fifo != q.fifo {
			return MoveTask{}, invalidParameterValue.error("Source and destination queues must be of the same type.")
		}
		task.Destination = destination.ARN()
	}
	var dead []*list.Element
	for e := q.messages.Front(); e != nil; e = e.Next() {
		if !q.expired(at(e), now) && !now.Before(at(e).availableAt(q.settings)) {
			dead = append(dead, e)
		}
	}
	task.ToMove = len(dead)
	for _, e := range dead {
		to := destination
		if to == nil {
			to = q.service.byARN(at(e).source)
		}
		switch {
		case to != nil:
			q.revive(e, to, now)
			task.Moved++
			continue
		case at(e).source == "":
			task.Failure = "CouldNotDetermineMessageSource"
		default:
			task.Failure = queueDoesNotExist.queryCode
		}
		break
	}
	q.tasks = append(q.tasks, task)
	return task, nil
}

// revive makes a dead message a new one in another queue.
func (q *Queue) revive(e *list.Element, to *Queue, now time.Time) {
	m := q.remove(e)
	again := &message{
		serial:     q.service.next(),
		id:         newID(),
		body:       m.body,
		attributes: m.attributes,
		trace:      m.trace,
		group:      m.group,
		dedup:      m.dedup,
		sent:       now,
	}
	if to.fifo {
		again.sequence = sequence(again.serial)
	}
	to.append(again)
}

// isTarget says that a queue is the dead-letter queue of another.
func (s *Service) isTarget(q *Queue) bool {
	for _, other := range s.queues {
		if policy := other.settings.redrive; policy != nil && policy.Target == q.ARN() {
			return true
		}
	}
	return false
}

// MoveTasks lists the redrives of this dead-letter queue, the last one first.
func (q *Queue) MoveTasks() []MoveTask {
	q.service.mu.Lock()
	defer q.service.mu.Unlock()
	tasks := slices.Clone(q.tasks)
	slices.Reverse(tasks)
	return tasks
}
