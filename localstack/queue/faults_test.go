package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// drain receives and deletes until nothing comes for an hour, and returns the
// bodies in their order.
func drain(t *testing.T, q *queue.Queue) []string {
	t.Helper()
	var all []string
	for idle := 0; idle < 60; {
		got := receive(t, q, 10)
		for _, m := range got {
			all = append(all, m.Body)
			if err := q.Delete(m.ReceiptHandle); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) == 0 {
			idle++
			time.Sleep(time.Minute)
		}
	}
	return all
}

func faulty(t *testing.T, faults queue.Faults) (delivered []string) {
	t.Helper()
	bubble(t, queue.Options{Faults: faults}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		for i := range 100 {
			sendAll(t, q, "", fmt.Sprintf("%02d", i))
		}
		delivered = drain(t, q)
		expect(t, "left", q.Depth(), queue.Depth{})
	})
	return delivered
}

func unique(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

func TestFaults_NoneByDefault(t *testing.T) {
	got := faulty(t, queue.Faults{})
	expect(t, "each once, in order", slices.Equal(got, unique(got)) && len(got) == 100, true)
}

func TestFaults_RedeliverAlsoAfterTheDelete(t *testing.T) {
	got := faulty(t, queue.Faults{Redeliver: 0.3})
	expect(t, "none is lost", len(unique(got)), 100)
	if len(got) < 110 || len(got) > 160 {
		t.Errorf("%d deliveries of 100 messages with 30%% copies", len(got))
	}
	expect(t, "all twice", len(faulty(t, queue.Faults{Redeliver: 1})), 200)
}

func TestFaults_CopiesAreTheSameMessage(t *testing.T) {
	bubble(t, queue.Options{Faults: queue.Faults{Redeliver: 1}}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sent := send(t, q, queue.Outgoing{Body: "x"})
		first := receive(t, q, 1)[0]
		batch, err := q.ReceiveBatch(t.Context(), queue.BatchOptions{}) // the copy comes within the visibility timeout
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "id", batch[0].ID, sent.MessageID)
		expect(t, "own handle", batch[0].ReceiptHandle != first.ReceiptHandle, true)
		expect(t, "receives", batch[0].System["ApproximateReceiveCount"], "2")
		if err := q.Delete(batch[0].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		expect(t, "the first is still in flight", q.Depth().InFlight, 1)
	})
}

func TestFaults_CopiesAreInFlightToo(t *testing.T) {
	bubble(t, queue.Options{InFlight: 2, Faults: queue.Faults{Redeliver: 1}}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "1", "2")
		receive(t, q, 1)
		expect(t, "depth", q.Depth(), queue.Depth{Visible: 1, InFlight: 2})
		_, err := q.Receive(t.Context(), queue.ReceiveOptions{})
		expect(t, "at the quota", code(err), "OverLimit")
	})
}

func TestFaults_ReorderIsSeeded(t *testing.T) {
	first := faulty(t, queue.Faults{Reorder: true, Seed: 1})
	expect(t, "each once", len(first) == 100 && len(unique(first)) == 100, true)
	expect(t, "in another order", slices.IsSorted(first), false)
	expect(t, "same seed, same order", strings.Join(faulty(t, queue.Faults{Reorder: true, Seed: 1}), " "), strings.Join(first, " "))
	expect(t, "other seed, other order", slices.Equal(faulty(t, queue.Faults{Reorder: true, Seed: 2}), first), false)
	both := queue.Faults{Reorder: true, Redeliver: 0.5, Seed: 3}
	expect(t, "same seed, same copies", slices.Equal(faulty(t, both), faulty(t, both)), true)
}

func TestFaults_NotForFIFO(t *testing.T) {
	bubble(t, queue.Options{Faults: queue.Faults{Reorder: true, Redeliver: 1}}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sendAll(t, q, "a", "1", "2", "3", "4")
		expect(t, "once and in order", strings.Join(drain(t, q), ""), "1234")
	})
}

// A consumer that remembers what it has done is right on the worst queue.
func TestFaults_RememberingConsumerDoesAllOnce(t *testing.T) {
	bubble(t, queue.Options{Faults: queue.Faults{Reorder: true, Redeliver: 0.5, Seed: 7}}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		for i := range 50 {
			sendAll(t, q, "", fmt.Sprint(i))
		}
		done, deliveries := map[string]bool{}, 0
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		for {
			batch, err := q.ReceiveBatch(ctx, queue.BatchOptions{})
			if err != nil {
				break
			}
			for _, m := range batch {
				deliveries++
				if deliveries%3 == 0 {
					continue // it fails, and comes back
				}
				done[m.ID] = true
				if err := q.Delete(m.ReceiptHandle); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect(t, "done", len(done), 50)
		expect(t, "more deliveries than messages", deliveries > 60, true)
	})
}
