package queue_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

func TestStandard_VisibilityTimeoutAndReceiveCount(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", map[string]string{"VisibilityTimeout": "10"})
		sendAll(t, q, "", "x")
		first := receive(t, q, 10)[0]
		time.Sleep(10*time.Second - 1)
		expect(t, "before its end", bodies(receive(t, q, 10)), "")
		expect(t, "in flight", q.Depth(), queue.Depth{InFlight: 1})
		time.Sleep(time.Nanosecond)
		expect(t, "visible", q.Depth(), queue.Depth{Visible: 1})
		second := receive(t, q, 10)[0]
		expect(t, "id", second.ID, first.ID)
		expect(t, "a new handle for each receive", second.ReceiptHandle != first.ReceiptHandle, true)
		expect(t, "first count", first.System["ApproximateReceiveCount"], "1")
		expect(t, "second count", second.System["ApproximateReceiveCount"], "2")
		expect(t, "first received", second.System["ApproximateFirstReceiveTimestamp"], first.System["ApproximateFirstReceiveTimestamp"])
	})
}

func TestStandard_AttributesAreCopied(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", map[string]string{"VisibilityTimeout": "0"})
		attributes := map[string]queue.Attribute{"a": {DataType: "String", StringValue: "b"}}
		send(t, q, queue.Outgoing{Body: "x", Attributes: attributes})
		clear(attributes)
		clear(receive(t, q, 1)[0].Attributes)
		expect(t, "attribute", receive(t, q, 1)[0].Attributes["a"].StringValue, "b")
	})
}

func TestStandard_OldHandleDeletesNothing(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "x")
		first := receive(t, q, 1)[0]
		time.Sleep(30 * time.Second)
		second := receive(t, q, 1)[0]
		expect(t, "old handle", code(q.Delete(first.ReceiptHandle)), "ok")
		expect(t, "still there", q.Depth(), queue.Depth{InFlight: 1})
		expect(t, "old handle's visibility", code(q.ChangeVisibility(first.ReceiptHandle, 0)), "InvalidParameterValueException")
		time.Sleep(30 * time.Second)
		expect(t, "last handle, late", code(q.Delete(second.ReceiptHandle)), "ok")
		expect(t, "gone", q.Depth(), queue.Depth{})
		expect(t, "again", code(q.Delete(second.ReceiptHandle)), "ok")
	})
}

func TestStandard_HandlesOfNowhere(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, other := create(t, s, "orders", nil), create(t, s, "other", nil)
		sendAll(t, other, "", "x")
		foreign := receive(t, other, 1)[0].ReceiptHandle
		sendAll(t, q, "", "y")
		own := receive(t, q, 1)[0].ReceiptHandle
		inside, err := base64.RawURLEncoding.DecodeString(own[4:])
		if err != nil {
			t.Fatal(err)
		}
		longer := own[:4] + base64.RawURLEncoding.EncodeToString(append(inside, 'x'))
		for _, handle := range []string{longer, "nonsense", "AQEB", "AQEBAAAA", foreign, foreign + "A", foreign[:len(foreign)-2]} {
			expect(t, "delete "+handle, code(q.Delete(handle)), "ReceiptHandleIsInvalid")
			expect(t, "change "+handle, code(q.ChangeVisibility(handle, 0)), "ReceiptHandleIsInvalid")
		}
		expect(t, "none", code(q.Delete("")), "MissingRequiredParameterException")
		expect(t, "untouched", other.Depth(), queue.Depth{InFlight: 1})
		expect(t, "untouched", q.Depth(), queue.Depth{InFlight: 1})
	})
}

func TestStandard_ChangeVisibility(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "x")
		handle := receive(t, q, 1)[0].ReceiptHandle
		time.Sleep(20 * time.Second)
		expect(t, "extend", code(q.ChangeVisibility(handle, 20*time.Second)), "ok")
		time.Sleep(20*time.Second - 1)
		expect(t, "extended from the call on", q.Depth(), queue.Depth{InFlight: 1})
		expect(t, "all 12 hours are not left", code(q.ChangeVisibility(handle, 12*time.Hour)), "InvalidParameterValueException")
		expect(t, "over the maximum", code(q.ChangeVisibility(handle, 12*time.Hour+time.Second)), "InvalidParameterValueException")
		expect(t, "below 0", code(q.ChangeVisibility(handle, -1)), "InvalidParameterValueException")
		expect(t, "what is left", code(q.ChangeVisibility(handle, 12*time.Hour-40*time.Second+1)), "ok")
		expect(t, "give back", code(q.ChangeVisibility(handle, 0)), "ok")
		expect(t, "given back", q.Depth(), queue.Depth{Visible: 1})
		expect(t, "not in flight", code(q.ChangeVisibility(handle, time.Second)), "MessageNotInflight")
		expect(t, "and stays visible", q.Depth(), queue.Depth{Visible: 1})
		expect(t, "delete", code(q.Delete(handle)), "ok")
		expect(t, "deleted", code(q.ChangeVisibility(handle, 0)), "InvalidParameterValueException")
	})
}

func TestStandard_DelaysAreNotRetroactive(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", map[string]string{"DelaySeconds": "60"})
		sendAll(t, q, "", "queue's")
		send(t, q, queue.Outgoing{Body: "own", Delay: new(10 * time.Second)})
		send(t, q, queue.Outgoing{Body: "none", Delay: new(time.Duration)})
		if err := q.SetAttributes(map[string]string{"DelaySeconds": "0"}); err != nil {
			t.Fatal(err)
		}
		expect(t, "at once", bodies(receive(t, q, 10)), "none ")
		expect(t, "delayed", q.Depth(), queue.Depth{InFlight: 1, Delayed: 2})
		time.Sleep(10 * time.Second)
		expect(t, "after ten seconds", bodies(receive(t, q, 10)), "own ")
		time.Sleep(50*time.Second - 1)
		expect(t, "not before a minute", q.Depth().Delayed, 1)
		time.Sleep(time.Nanosecond)
		expect(t, "after a minute", q.Depth().Delayed, 0)
	})
}

func TestStandard_RetentionCountsFromTheSending(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", map[string]string{"MessageRetentionPeriod": "3600"})
		sendAll(t, q, "", "old")
		time.Sleep(time.Hour - time.Second)
		sendAll(t, q, "", "new")
		handle := receive(t, q, 1)[0].ReceiptHandle
		time.Sleep(time.Second)
		expect(t, "in flight or not", q.Depth(), queue.Depth{Visible: 1})
		expect(t, "received", bodies(receive(t, q, 10)), "new ")
		expect(t, "deleting what has gone", code(q.Delete(handle)), "ok")
		if err := q.SetAttributes(map[string]string{"MessageRetentionPeriod": "60"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		expect(t, "a shorter period holds for what is there", q.Depth(), queue.Depth{})
	})
}

func TestStandard_Purge(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "1", "2")
		handle := receive(t, q, 1)[0].ReceiptHandle
		expect(t, "first", code(q.Purge()), "ok")
		expect(t, "also in flight", q.Depth(), queue.Depth{})
		expect(t, "its handle", code(q.Delete(handle)), "ok")
		time.Sleep(60*time.Second - 1)
		expect(t, "second", code(q.Purge()), "PurgeQueueInProgress")
		time.Sleep(time.Nanosecond)
		expect(t, "after a minute", code(q.Purge()), "ok")
	})
}

func TestStandard_DeletedQueueAndItsName(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "x")
		old := receive(t, q, 1)[0].ReceiptHandle
		expect(t, "delete", code(q.DeleteQueue()), "ok")
		expect(t, "again", code(q.DeleteQueue()), "QueueDoesNotExist")
		_, err := q.Send(queue.Outgoing{Body: "x"})
		expect(t, "send", code(err), "QueueDoesNotExist")
		_, err = s.Queue("orders")
		expect(t, "find", code(err), "QueueDoesNotExist")
		time.Sleep(60*time.Second - 1)
		_, err = s.CreateQueue("orders", nil)
		expect(t, "within a minute", code(err), "QueueDeletedRecently")
		time.Sleep(time.Nanosecond)
		again := create(t, s, "orders", nil)
		expect(t, "empty", again.Depth(), queue.Depth{})
		expect(t, "a handle of the old one", code(again.Delete(old)), "ReceiptHandleIsInvalid")
	})
}

func TestStandard_InFlightQuota(t *testing.T) {
	bubble(t, queue.Options{InFlight: 2}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "1", "2", "3")
		expect(t, "up to the quota", bodies(receive(t, q, 10)), "1 2 ")
		_, err := q.Receive(t.Context(), queue.ReceiveOptions{})
		expect(t, "at the quota", code(err), "OverLimit")
		time.Sleep(30 * time.Second)
		expect(t, "later", bodies(receive(t, q, 1)), "1 ")

		fifo := createFIFO(t, s, nil)
		sendAll(t, fifo, "a", "1", "2")
		sendAll(t, fifo, "b", "3")
		receive(t, fifo, 10)
		got, err := fifo.Receive(t.Context(), queue.ReceiveOptions{Wait: new(20 * time.Second)})
		expect(t, "FIFO at the quota", code(err)+" "+bodies(got), "ok ")
		got, err = fifo.Receive(t.Context(), queue.ReceiveOptions{Max: 10, Wait: new(20 * time.Second)})
		expect(t, "FIFO when they land", code(err)+" "+bodies(got), "ok 1 2 ")
		start := time.Now()
		got, err = fifo.ReceiveBatch(t.Context(), queue.BatchOptions{})
		expect(t, "FIFO that waits", code(err)+" "+bodies(got), "ok 1 2 ")
		expect(t, "until they land", time.Since(start), 30*time.Second)
	})
}

func TestQueues_FoundByNameARNAndURL(t *testing.T) {
	bubble(t, queue.Options{Region: "eu-west-1", AccountID: "123456789012", BaseURL: "http://127.0.0.1:9324"}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		create(t, s, "invoices", nil)
		expect(t, "ARN", q.ARN(), "arn:aws:sqs:eu-west-1:123456789012:orders")
		expect(t, "URL", q.URL(), "http://127.0.0.1:9324/123456789012/orders")
		for _, id := range []string{"orders", q.ARN(), q.URL()} {
			found, err := s.Queue(id)
			expect(t, id, found, q)
			expect(t, id, err, nil)
		}
		for _, id := range []string{"", "Orders", "arn:aws:sqs:eu-west-1:1:orders", "arn:aws:sqs:us-east-1:123456789012:orders"} {
			_, err := s.Queue(id)
			expect(t, id, code(err), "QueueDoesNotExist")
		}
		names := []string{}
		for _, q := range s.Queues() {
			names = append(names, q.Name())
		}
		expect(t, "list", slices.Equal(names, []string{"invoices", "orders"}), true)
	})
}

func TestAttributes_ChangeAsAWhole(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		before, err := q.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, bad := range []map[string]string{
			{"DelaySeconds": "1", "VisibilityTimeout": "43201"},
			{"DelaySeconds": "1", "VisibilityTimeout": "-1"},
			{"DelaySeconds": "901"},
			{"DelaySeconds": "1.5"},
			{"MessageRetentionPeriod": "59"},
			{"MessageRetentionPeriod": "1209601"},
			{"ReceiveMessageWaitTimeSeconds": "21"},
			{"MaximumMessageSize": "1023"},
			{"MaximumMessageSize": "1048577"},
			{"RedrivePolicy": `{"deadLetterTargetArn":"` + q.ARN() + `"}`},
		} {
			if err := q.SetAttributes(bad); err == nil {
				t.Errorf("%v was taken", bad)
			}
		}
		after, err := q.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "unchanged", maps.Equal(after, before), true)
		fifo := createFIFO(t, s, nil)
		expect(t, "throughput by group", code(fifo.SetAttributes(map[string]string{"FifoThroughputLimit": "perMessageGroupId"})), "InvalidAttributeValue")
		expect(t, "a choice that is none", code(fifo.SetAttributes(map[string]string{"DeduplicationScope": "x"})), "InvalidAttributeValue")
		if err := q.SetAttributes(map[string]string{"VisibilityTimeout": "7", "Policy": "{}"}); err != nil {
			t.Fatal(err)
		}
		after, err = q.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "timeout", after["VisibilityTimeout"], "7")
		expect(t, "for the poller", q.VisibilityTimeout(), 7*time.Second)
		expect(t, "created", after["CreatedTimestamp"], before["CreatedTimestamp"])
		expect(t, "modified", after["LastModifiedTimestamp"] > before["LastModifiedTimestamp"], true)
		expect(t, "kept", after["Policy"], "{}")
	})
}
