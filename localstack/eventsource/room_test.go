package eventsource_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func always(n int) func(string) int { return func(string) int { return n } }

// bounded starts the mappings like start, with Options.Capacity.
func (w *world) bounded(capacity func(string) int, handle func(context.Context, event) (emulator.Result, error), sources ...template.Source) {
	w.Helper()
	o := w.options(handle, sources...)
	o.Capacity = capacity
	var err error
	if w.mappings, err = eventsource.Start(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

func takes(d time.Duration) func(context.Context, event) (emulator.Result, error) {
	return func(ctx context.Context, e event) (emulator.Result, error) {
		time.Sleep(d)
		return succeeds(ctx, e)
	}
}

// If a message were received before its invocation can begin, its visibility timeout could end
// while the invocation waits in the emulator. The message would be handled and dead-lettered too.
func TestV2_NothingIsReceivedThatCannotBegin(t *testing.T) {
	bubble(t, func(w *world) {
		dead := w.create("dead", nil)
		q := w.create("orders", map[string]string{"VisibilityTimeout": "5", "RedrivePolicy": `{"maxReceiveCount":2,"deadLetterTargetArn":"` + dead.arn() + `"}`})
		want := map[string]int{}
		for i := range 60 {
			w.send(q, "", fmt.Sprint("m", i))
			want[fmt.Sprint("m", i)] = 1
		}
		s := fromQueue("orders")
		s.BatchSize, s.Concurrency = 1, 60
		line := make(chan struct{}, 16)
		w.bounded(always(16), func(ctx context.Context, e event) (emulator.Result, error) {
			line <- struct{}{}
			defer func() { <-line }()
			return takes(2*time.Second)(ctx, e)
		}, s)
		synctest.Wait()
		expect(t, "what waits is not hidden", q.depth(), depth{Visible: 44, InFlight: 16})
		time.Sleep(time.Minute)
		got := map[string]int{}
		for _, name := range w.batches() {
			got[name]++
		}
		expect(t, "invocations", got, want)
		expect(t, "left", q.depth(), depth{})
		expect(t, "dead", dead.depth(), depth{})
	})
}

func TestSQS_WithoutACapacityMaximumConcurrencyIsTheBound(t *testing.T) {
	for name, capacity := range map[string]func(string) int{"nil": nil, "0": always(0), "more": always(100)} {
		bubble(t, func(w *world) {
			q := w.create("orders", nil)
			for i := range 40 {
				w.send(q, "", fmt.Sprint(i))
			}
			s := fromQueue("orders")
			s.BatchSize, s.Concurrency = 1, 30
			w.bounded(capacity, takes(time.Second), s)
			synctest.Wait()
			expect(t, name, len(w.batches()), 30)
		})
	}
}

func TestSQS_TheQueuesOfAFunctionShareItsCapacity(t *testing.T) {
	bubble(t, func(w *world) {
		names := strings.Fields("orders refunds other")
		for _, name := range names {
			w.send(w.create(name, nil), "", strings.Fields("a b c d e f g h i j")...)
		}
		source := func(name string) template.Source {
			s := fromQueue(name)
			s.Name, s.BatchSize, s.Concurrency = name, 1, 8
			return s
		}
		o := w.options(takes(time.Second), source("orders"), source("refunds"))
		o.Template.Functions = append(o.Template.Functions, &template.Function{LogicalID: "Other", Name: "other", Sources: []template.Source{source("other")}})
		o.Capacity = func(function string) int { return map[string]int{"Consumer": 3, "Other": 5}[function] }
		var err error
		w.mappings, err = eventsource.Start(w.Context(), o)
		expect(t, "error", err, nil)
		synctest.Wait()
		perFunction := map[string]int{}
		for i := range w.batches() {
			perFunction[w.event(i).function]++
		}
		expect(t, "at a time", perFunction, map[string]int{"Consumer": 3, "Other": 5})
		time.Sleep(8 * time.Second) // 20 messages of one second each, three at a time
		for _, name := range names {
			q := w.sqs.queues[name]
			expect(t, "left of "+name, q.depth(), depth{})
		}
	})
}

// While a poller waits for messages or for the end of an outage, the other queue of the function
// must be able to use the function's only place.
func TestSQS_AQueueWithoutMessagesHoldsNoPlace(t *testing.T) {
	for name, c := range map[string]struct {
		attributes map[string]string
		gone       bool
		within     time.Duration
	}{
		"empty":                         {nil, false, 250 * time.Millisecond},
		"empty, with a wait of its own": {map[string]string{"ReceiveMessageWaitTimeSeconds": "20"}, false, 1300 * time.Millisecond},
		"gone":                          {nil, true, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				q := w.create("orders", nil)
				other := w.create("refunds", c.attributes)
				s := fromQueue("refunds")
				s.Name = "Refunds"
				w.bounded(always(1), takes(time.Second), s, fromQueue("orders"))
				synctest.Wait()
				if c.gone {
					other.delete()
				}
				for i := range 10 { // at different moments of a receive, which waits up to 20 s
					time.Sleep(10*time.Second + time.Duration(i)*4137*time.Millisecond)
					sent := time.Now()
					w.send(q, "", "a")
					time.Sleep(5 * time.Second)
					if after := w.event(i).at.Sub(sent); after > c.within {
						t.Errorf("delivered after %v, want %v at most", after, c.within)
					}
				}
				expect(t, "left", q.depth(), depth{})
				asked := strings.Count(w.log.String(), "receiving: ")
				if c.gone != (asked > 0) || asked > 100 { // at most every 5 s in about six minutes, plus the short first pauses
					t.Errorf("%d failures", asked)
				}
			})
		})
	}
}

// If two queues always have messages, their pollers get the function's only place in turn.
func TestSQS_ABusyQueueLeavesTheOtherItsTurn(t *testing.T) {
	bubble(t, func(w *world) {
		for _, name := range []string{"orders", "refunds"} {
			q := w.create(name, nil)
			for range 10 {
				w.send(q, "", name)
			}
		}
		orders, refunds := fromQueue("orders"), fromQueue("refunds")
		orders.Name, orders.BatchSize, refunds.BatchSize = "Orders", 1, 1
		w.bounded(always(1), takes(time.Second), orders, refunds)
		time.Sleep(time.Minute)
		all := w.batches()
		expect(t, "invocations", len(all), 20)
		for i := range 18 {
			if all[i] == all[i+1] && all[i] == all[i+2] {
				t.Errorf("%s three times in a row: %v", all[i], all)
			}
		}
	})
}

func TestSQS_CloseWhileTheOthersHaveThePlaces(t *testing.T) {
	bubble(t, func(w *world) {
		orders, refunds := w.create("orders", nil), w.create("refunds", nil)
		w.send(orders, "", "a")
		s := fromQueue("refunds")
		s.Name = "Refunds"
		w.bounded(always(1), takes(10*time.Second), fromQueue("orders"), s)
		synctest.Wait()
		w.send(refunds, "", "b")
		time.Sleep(time.Second)
		begun := time.Now()
		expect(t, "Close", w.mappings.Close(), nil)
		expect(t, "Close took", time.Since(begun), 9*time.Second)
		expect(t, "batches", w.batches(), []string{"a"})
		expect(t, "left", refunds.depth(), depth{Visible: 1})
	})
}

// A batch that has messages keeps its place while its window lasts, even if the next receive
// fails.
func TestSQS_AnOutageWithinAWindowCostsNoPlace(t *testing.T) {
	bubble(t, func(w *world) {
		orders, refunds := w.create("orders", nil), w.create("refunds", nil)
		s, other := fromQueue("orders"), fromQueue("refunds")
		s.Window, other.Name = 10*time.Second, "Refunds"
		w.bounded(always(1), takes(20*time.Second), s, other)
		w.send(orders, "", "a")
		time.Sleep(time.Second)
		w.send(refunds, "", "b")
		failed := false
		w.breaks(func(string) bool { once := !failed; failed = true; return once })
		w.send(orders, "", "c") // ends the receive that is waiting, so that the next one fails
		time.Sleep(time.Minute)
		w.breaks(nil)
		expect(t, "failed", failed, true)
		expect(t, "batches", w.batches(), []string{"a c", "b"})
	})
}

func TestSQS_QueuesThatShareAreLookedAtFourTimesASecond(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("orders", nil)
		w.create("refunds", nil)
		other := fromQueue("refunds")
		other.Name = "Refunds"
		w.bounded(always(1), succeeds, fromQueue("orders"), other)
		time.Sleep(10 * time.Second)
		looks := 0
		w.breaks(func(string) bool { looks++; return false })
		time.Sleep(time.Minute)
		w.breaks(nil)
		if looks < 470 || looks > 482 {
			t.Errorf("%d looks at two queues in a minute, want 480", looks)
		}
	})
}
