package queue_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// withDead makes a queue whose messages die after their second receive.
func withDead(t *testing.T, s *queue.Service) (q, dead *queue.Queue) {
	t.Helper()
	dead = create(t, s, "dead", nil)
	q = create(t, s, "orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `","maxReceiveCount":2}`})
	return q, dead
}

// kill receives all messages until they have moved.
func kill(t *testing.T, q *queue.Queue) {
	t.Helper()
	for len(receive(t, q, 10)) > 0 {
		time.Sleep(q.VisibilityTimeout())
	}
}

func TestDeadLetter_AfterMaxReceiveCount(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sent := send(t, q, queue.Outgoing{Body: "x", Attributes: map[string]queue.Attribute{"a": {DataType: "String", StringValue: "b"}}})
		sendAll(t, q, "", "y")
		first := receive(t, q, 1)[0]
		time.Sleep(30 * time.Second)
		expect(t, "second receive", bodies(receive(t, q, 1)), "x ")
		time.Sleep(30 * time.Second)
		expect(t, "no third", bodies(receive(t, q, 1)), "y ")
		expect(t, "moved", dead.Depth(), queue.Depth{Visible: 1})
		got := receive(t, dead, 1)[0]
		expect(t, "id", got.ID, sent.MessageID)
		expect(t, "attributes", got.MD5OfAttributes, sent.MD5OfAttributes)
		expect(t, "receives, across all queues", got.System["ApproximateReceiveCount"], "3")
		expect(t, "sent", got.System["SentTimestamp"], first.System["SentTimestamp"])
		expect(t, "first received", got.System["ApproximateFirstReceiveTimestamp"], first.System["ApproximateFirstReceiveTimestamp"])
		expect(t, "source", got.System["DeadLetterQueueSourceArn"], q.ARN())
		expect(t, "its old handle", code(q.Delete(first.ReceiptHandle)), "ok")
		expect(t, "is no handle there", dead.Depth(), queue.Depth{InFlight: 1})
	})
}

// "The expiration of a message is always based on its original enqueue
// timestamp", of standard queues.
func TestDeadLetter_RetentionCountsFromTheFirstSending(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sendAll(t, q, "", "x")
		time.Sleep(4*24*time.Hour - 90*time.Second)
		kill(t, q)
		expect(t, "moved", dead.Depth(), queue.Depth{Visible: 1})
		time.Sleep(30 * time.Second)
		expect(t, "four days after the sending", dead.Depth(), queue.Depth{})
	})
}

func TestDeadLetter_WakesWhoWaitsThere(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sendAll(t, q, "", "x")
		got := make(chan string)
		go func() {
			batch, err := dead.ReceiveBatch(t.Context(), queue.BatchOptions{})
			got <- bodies(batch) + code(err)
		}()
		kill(t, q)
		expect(t, "the dead", <-got, "x ok")
	})
}

func TestDeadLetter_GoneTargetKeepsMessagesComing(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sendAll(t, q, "", "x")
		if err := dead.DeleteQueue(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			expect(t, "received", bodies(receive(t, q, 1)), "x ")
			time.Sleep(30 * time.Second)
		}
	})
}

func TestDeadLetter_OfADeadLetterQueue(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		last := create(t, s, "last", nil)
		policy := map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + last.ARN() + `","maxReceiveCount":1}`}
		if err := dead.SetAttributes(policy); err != nil {
			t.Fatal(err)
		}
		sendAll(t, q, "", "x")
		kill(t, q)
		expect(t, "it counts its own receives", bodies(receive(t, dead, 1)), "x ")
		time.Sleep(30 * time.Second)
		expect(t, "then none", bodies(receive(t, dead, 1)), "")
		expect(t, "source", receive(t, last, 1)[0].System["DeadLetterQueueSourceArn"], dead.ARN())
	})
}

func TestDeadLetter_AfterTenReceivesByDefault(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		dead := create(t, s, "dead", nil)
		q := create(t, s, "orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `"}`})
		sendAll(t, q, "", "x")
		for range 10 {
			expect(t, "received", bodies(receive(t, q, 1)), "x ")
			time.Sleep(30 * time.Second)
		}
		expect(t, "no more", bodies(receive(t, q, 1)), "")
	})
}

func TestRedrive_LeavesWhatHasExpired(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sendAll(t, q, "", "x")
		kill(t, q)
		time.Sleep(4 * 24 * time.Hour)
		task, err := dead.Redrive(nil)
		expect(t, "task", code(err), "ok")
		expect(t, "to move", task.ToMove, 0)
		expect(t, "not revived", q.Depth(), queue.Depth{})
	})
}

// "All redriven messages are considered new messages with a new messageID and
// enqueueTime."
func TestRedrive_GivesNewIDs(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sent := send(t, q, queue.Outgoing{Body: "x", Attributes: map[string]queue.Attribute{"a": {DataType: "String", StringValue: "b"}}})
		kill(t, q)
		task, err := dead.Redrive(nil)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "to move", task.ToMove, 1)
		expect(t, "moved", task.Moved, 1)
		expect(t, "failure", task.Failure, "")
		expect(t, "left", dead.Depth(), queue.Depth{})
		now := time.Now().UnixMilli()
		got := receive(t, q, 1)[0]
		expect(t, "body", got.Body, "x")
		expect(t, "attributes", got.MD5OfAttributes, sent.MD5OfAttributes)
		expect(t, "a new id", got.ID != sent.MessageID, true)
		expect(t, "receives", got.System["ApproximateReceiveCount"], "1")
		expect(t, "sent", got.System["SentTimestamp"], strconv.FormatInt(now, 10))
		expect(t, "source", got.System["DeadLetterQueueSourceArn"], "")
		kill(t, q)
		time.Sleep(30 * time.Second)
		kill(t, q)
		expect(t, "it dies again", dead.Depth(), queue.Depth{Visible: 1})
	})
}

func TestRedrive_MovesWhatIsVisibleToItsOwnSource(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		other := create(t, s, "other", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `","maxReceiveCount":1}`})
		sendAll(t, q, "", "q1", "q2")
		sendAll(t, other, "", "o1")
		kill(t, q)
		kill(t, other)
		expect(t, "in flight", bodies(receive(t, dead, 1)), "q1 ")
		task, err := dead.Redrive(nil)
		expect(t, "task", code(err), "ok")
		expect(t, "moved", task.Moved, 2)
		expect(t, "to q", bodies(receive(t, q, 10)), "q2 ")
		expect(t, "to the other", bodies(receive(t, other, 10)), "o1 ")
		expect(t, "in flight stays", dead.Depth(), queue.Depth{InFlight: 1})
	})
}

func TestRedrive_StopsAtWhatHasNoSource(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		sendAll(t, q, "", "x")
		kill(t, q)
		sendAll(t, dead, "", "sent here", "too")
		task, err := dead.Redrive(nil)
		expect(t, "task", code(err), "ok")
		expect(t, "moved", task.Moved, 1)
		expect(t, "of", task.ToMove, 3)
		expect(t, "failure", task.Failure, "CouldNotDetermineMessageSource")
		expect(t, "left", dead.Depth(), queue.Depth{Visible: 2})
		custom := create(t, s, "custom", nil)
		task, err = dead.Redrive(custom)
		expect(t, "to a destination", code(err), "ok")
		expect(t, "destination", task.Destination, custom.ARN())
		expect(t, "there", bodies(receive(t, custom, 10)), "sent here too ")
		tasks := dead.MoveTasks()
		expect(t, "tasks", len(tasks), 2)
		expect(t, "the last one first", tasks[0], task)
	})
}

func TestRedrive_SourceDeletedSince(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		create(t, s, "other", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `"}`})
		sendAll(t, q, "", "x")
		kill(t, q)
		if err := q.DeleteQueue(); err != nil {
			t.Fatal(err)
		}
		task, err := dead.Redrive(nil)
		expect(t, "task", code(err), "ok")
		expect(t, "failure", task.Failure, "AWS.SimpleQueueService.NonExistentQueue")
		expect(t, "kept", dead.Depth(), queue.Depth{Visible: 1})
	})
}

func TestRedrive_FIFOKeepsGroupAndOrderPastDeduplication(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		dead := create(t, s, "dead.fifo", map[string]string{"FifoQueue": "true"})
		q := createFIFO(t, s, map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `","maxReceiveCount":1}`})
		sendAll(t, q, "a", "a1", "a2")
		kill(t, q)
		if _, err := dead.Redrive(nil); err != nil {
			t.Fatal(err)
		}
		got := receive(t, q, 10)
		expect(t, "within five minutes of the first sending", bodies(got), "a1 a2 ")
		expect(t, "group", got[1].System["MessageGroupId"], "a")
		expect(t, "sequence", got[0].System["SequenceNumber"] < got[1].System["SequenceNumber"], true)
		standard := create(t, s, "standard", nil)
		_, err := dead.Redrive(standard)
		expect(t, "to another type", code(err), "InvalidParameterValueException")
	})
}

func TestRedrive_Refusals(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, dead := withDead(t, s)
		_, err := q.Redrive(nil)
		expect(t, "not a dead-letter queue", code(err), "InvalidParameterValueException")
		elsewhere := create(t, queue.New(queue.Options{}), "orders", nil)
		_, err = dead.Redrive(elsewhere)
		expect(t, "another service's queue", code(err), "ResourceNotFoundException")
		gone := create(t, s, "gone", nil)
		if err := gone.DeleteQueue(); err != nil {
			t.Fatal(err)
		}
		_, err = dead.Redrive(gone)
		expect(t, "a deleted destination", code(err), "ResourceNotFoundException")
		expect(t, "no tasks", len(dead.MoveTasks()), 0)
		if err := q.SetAttributes(map[string]string{"RedrivePolicy": ""}); err != nil {
			t.Fatal(err)
		}
		_, err = dead.Redrive(nil)
		expect(t, "no longer one", code(err), "InvalidParameterValueException")
	})
}
