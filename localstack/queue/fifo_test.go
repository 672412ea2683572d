package queue_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

func TestFIFO_GroupWaitsForWhatIsInFlight(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sendAll(t, q, "a", "a1", "a2", "a3")
		sendAll(t, q, "b", "b1")
		first := receive(t, q, 2)
		expect(t, "first", bodies(first), "a1 a2 ")
		expect(t, "the other group alone", bodies(receive(t, q, 10)), "b1 ")
		if err := q.Delete(first[0].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		expect(t, "a2 is still in flight", bodies(receive(t, q, 10)), "")
		if err := q.Delete(first[1].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		expect(t, "the rest", bodies(receive(t, q, 10)), "a3 ")
	})
}

func TestFIFO_WhatComesBackKeepsItsPlace(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sendAll(t, q, "a", "a1", "a2", "a3")
		got := receive(t, q, 2)
		if err := q.ChangeVisibility(got[0].ReceiptHandle, 0); err != nil {
			t.Fatal(err)
		}
		expect(t, "a1 is back, a2 is not", bodies(receive(t, q, 10)), "")
		time.Sleep(30 * time.Second)
		expect(t, "all in order", bodies(receive(t, q, 10)), "a1 a2 a3 ")
	})
}

func TestFIFO_AsManyOfOneGroupAsPossible(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sendAll(t, q, "a", "a1")
		sendAll(t, q, "b", "b1")
		sendAll(t, q, "a", "a2", "a3")
		sendAll(t, q, "b", "b2")
		expect(t, "two", bodies(receive(t, q, 2)), "a1 a2 ")
		time.Sleep(30 * time.Second)
		expect(t, "five", bodies(receive(t, q, 10)), "a1 a2 a3 b1 b2 ")
	})
}

func TestFIFO_DuplicatesForFiveMinutesAlsoAfterDelete(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		first := send(t, q, queue.Outgoing{Body: "x", GroupID: "a"})
		again := send(t, q, queue.Outgoing{Body: "x", GroupID: "b"}) // by content, in any group
		expect(t, "id of the duplicate", again.MessageID, first.MessageID)
		expect(t, "sequence of the duplicate", again.SequenceNumber, first.SequenceNumber)
		got := receive(t, q, 10)
		expect(t, "delivered", bodies(got), "x ")
		if err := q.Delete(got[0].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Minute - 1)
		sendAll(t, q, "a", "x")
		expect(t, "after the delete", bodies(receive(t, q, 10)), "")
		time.Sleep(time.Nanosecond)
		sendAll(t, q, "a", "x")
		expect(t, "after five minutes", bodies(receive(t, q, 10)), "x ")
		sendAll(t, q, "c", "x")
		expect(t, "the interval begins anew", bodies(receive(t, q, 10)), "")
	})
}

func TestFIFO_OwnDeduplicationIDOverridesTheContent(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		send(t, q, queue.Outgoing{Body: "x", GroupID: "a", DeduplicationID: "1"})
		send(t, q, queue.Outgoing{Body: "x", GroupID: "a", DeduplicationID: "2"})
		send(t, q, queue.Outgoing{Body: "y", GroupID: "a", DeduplicationID: "2"})
		// The SHA-256 of z, so that a message without an id of its own equals it.
		send(t, q, queue.Outgoing{Body: "w", GroupID: "a", DeduplicationID: "594e519ae499312b29433b7dd8a97ff068defcba9755b6d5d00e84c524d67b06"})
		send(t, q, queue.Outgoing{Body: "z", GroupID: "a"})
		got := receive(t, q, 10)
		expect(t, "delivered", bodies(got), "x x w ")
		expect(t, "the id", got[1].System["MessageDeduplicationId"], "2")
	})
}

func TestFIFO_DeduplicationScopeMessageGroup(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, map[string]string{"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"})
		sendAll(t, q, "a", "x", "x")
		sendAll(t, q, "b", "x")
		expect(t, "delivered", len(receive(t, q, 10)), 2)
	})
}

func TestFIFO_SequenceNumbersGrow(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		last := ""
		for _, body := range []string{"1", "2", "3"} {
			sent := send(t, q, queue.Outgoing{Body: body, GroupID: "a"})
			if len(sent.SequenceNumber) != 20 || sent.SequenceNumber <= last {
				t.Errorf("after %q: %q", last, sent.SequenceNumber)
			}
			last = sent.SequenceNumber
		}
		got := receive(t, q, 10)
		expect(t, "the last one's", got[2].System["SequenceNumber"], last)
	})
}

func TestFIFO_DeleteWithAnExpiredHandleIsRefused(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sendAll(t, q, "a", "a1")
		first := receive(t, q, 1)[0]
		time.Sleep(30 * time.Second)
		expect(t, "expired", code(q.Delete(first.ReceiptHandle)), "InvalidParameterValueException")
		second := receive(t, q, 1)[0]
		expect(t, "someone else's", code(q.Delete(first.ReceiptHandle)), "InvalidParameterValueException")
		expect(t, "the last one", code(q.Delete(second.ReceiptHandle)), "ok")
		expect(t, "gone already", code(q.Delete(second.ReceiptHandle)), "ok")
		expect(t, "left", q.Depth(), queue.Depth{})
	})
}

// "For FIFO queues, the per-queue delay setting is retroactive."
func TestFIFO_QueueDelayIsRetroactive(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, map[string]string{"DelaySeconds": "600"})
		sendAll(t, q, "a", "a1")
		if err := q.SetAttributes(map[string]string{"DelaySeconds": "10"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second - 1)
		expect(t, "before", q.Depth(), queue.Depth{Delayed: 1})
		time.Sleep(time.Nanosecond)
		expect(t, "after", bodies(receive(t, q, 1)), "a1 ")
	})
}

func TestFIFO_DeadLetterQueueUnblocksTheGroup(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		dead := create(t, s, "dead.fifo", map[string]string{"FifoQueue": "true"})
		q := createFIFO(t, s, map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN() + `","maxReceiveCount":"1"}`})
		sendAll(t, q, "a", "a1", "a2")
		first := receive(t, q, 1)[0]
		expect(t, "meanwhile", bodies(receive(t, q, 10)), "")
		expect(t, "not yet", dead.Depth(), queue.Depth{})
		time.Sleep(30 * time.Second)
		expect(t, "the group goes on", bodies(receive(t, q, 10)), "a2 ")
		expect(t, "the handle of what was moved", code(q.Delete(first.ReceiptHandle)), "InvalidParameterValueException")
		got := receive(t, dead, 10)
		if len(got) != 1 {
			t.Fatalf("the dead: %v", got)
		}
		expect(t, "body", got[0].Body, "a1")
		expect(t, "id", got[0].ID, first.ID)
		expect(t, "group", got[0].System["MessageGroupId"], "a")
		expect(t, "deduplication id", got[0].System["MessageDeduplicationId"], first.ID)
		expect(t, "sent anew", got[0].System["SentTimestamp"] > first.System["SentTimestamp"], true)
		expect(t, "first received", got[0].System["ApproximateFirstReceiveTimestamp"], first.System["ApproximateFirstReceiveTimestamp"])
		expect(t, "receives", got[0].System["ApproximateReceiveCount"], "2")
		expect(t, "source", got[0].System["DeadLetterQueueSourceArn"], q.ARN())
	})
}
