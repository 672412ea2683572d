package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// held is a message of the model: when it is visible again, by which handle.
type held struct {
	body, handle string
	until        time.Time
}

// A FIFO queue against a model of it: the undeleted messages of each group in
// the order of their sending. A receive returns the beginning of a group's list,
// and only if nothing of that group is in flight; and if it returns too few,
// every other group is blocked or empty.
func TestFIFO_LikeItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A bubble's test has no Deadline, which rapid would ask for.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			s := queue.New(queue.Options{})
			q, err := s.CreateQueue("q.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": "10"})
			if err != nil {
				t.Fatal(err)
			}
			model := map[string][]*held{}
			sent := 0
			inFlight := func(group string) bool {
				return slices.ContainsFunc(model[group], func(h *held) bool { return time.Now().Before(h.until) })
			}
			groups := rapid.SampledFrom([]string{"a", "b", "c"})
			pick := func(t *rapid.T) (string, *held) {
				group := groups.Draw(t, "group")
				if len(model[group]) == 0 {
					t.Skip("no message")
				}
				h := rapid.SampledFrom(model[group]).Draw(t, "message")
				if h.handle == "" {
					t.Skip("never received")
				}
				return group, h
			}
			t.Repeat(map[string]func(*rapid.T){
				"send": func(t *rapid.T) {
					sent++
					group, body := groups.Draw(t, "group"), fmt.Sprint(sent)
					if _, err := q.Send(queue.Outgoing{Body: body, GroupID: group, DeduplicationID: body}); err != nil {
						t.Fatal(err)
					}
					model[group] = append(model[group], &held{body: body})
				},
				"receive": func(t *rapid.T) {
					most := rapid.IntRange(1, 5).Draw(t, "most")
					free, available := map[string]bool{}, 0
					for group, list := range model {
						if !inFlight(group) {
							free[group] = true
							available += len(list)
						}
					}
					got, err := q.Receive(t.Context(), queue.ReceiveOptions{Max: most, Wait: new(time.Duration)})
					if err != nil {
						t.Fatal(err)
					}
					if len(got) != min(most, available) {
						t.Fatalf("%d messages, want %d of %d", len(got), most, available)
					}
					next := map[string]int{}
					for _, m := range got {
						group := m.System["MessageGroupId"]
						if !free[group] {
							t.Fatalf("%s of group %s, of which another message is in flight", m.Body, group)
						}
						want := model[group][next[group]]
						if m.Body != want.body {
							t.Fatalf("%s of group %s, before %s", m.Body, group, want.body)
						}
						next[group]++
						want.handle, want.until = m.ReceiptHandle, time.Now().Add(10*time.Second)
					}
				},
				"delete": func(t *rapid.T) {
					group, h := pick(t)
					err := q.Delete(h.handle)
					if time.Now().Before(h.until) != (err == nil) {
						t.Fatalf("deleting %s, hidden until %v: %v", h.body, h.until, err)
					}
					if err == nil {
						model[group] = slices.DeleteFunc(model[group], func(other *held) bool { return other == h })
					}
				},
				"give back": func(t *rapid.T) {
					_, h := pick(t)
					wasIn := time.Now().Before(h.until)
					if err := q.ChangeVisibility(h.handle, 0); wasIn != (err == nil) {
						t.Fatalf("giving %s back, hidden until %v: %v", h.body, h.until, err)
					}
					if wasIn {
						h.until = time.Now()
					}
				},
				"wait": func(t *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
				},
			})
		})
	})
}

// Many producers and consumers at once: nothing is lost, and each group comes in
// order, though some receives fail. The race detector watches.
func TestFIFO_ConcurrentConsumersKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := queue.New(queue.Options{})
		defer func() { _ = s.Close() }()
		q := createFIFO(t, s, nil)
		const groups, each = 8, 25
		var producers, consumers sync.WaitGroup
		for g := range groups {
			producers.Go(func() {
				for i := range each {
					group := string(rune('a' + g))
					if _, err := q.Send(queue.Outgoing{Body: fmt.Sprintf("%s%02d", group, i), GroupID: group}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var mu sync.Mutex
		done := map[string][]string{}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		for c := range 6 {
			consumers.Go(func() {
				for n := 1; ; n++ {
					batch, err := q.ReceiveBatch(ctx, queue.BatchOptions{Size: 3})
					if err != nil {
						return
					}
					for i, m := range batch {
						if (n+c+i)%5 == 0 {
							break // this one and what follows of the batch fail
						}
						mu.Lock()
						done[m.System["MessageGroupId"]] = append(done[m.System["MessageGroupId"]], m.Body)
						mu.Unlock()
						if err := q.Delete(m.ReceiptHandle); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		producers.Wait()
		consumers.Wait()
		for group, list := range done {
			if len(list) != each || !slices.IsSorted(list) {
				t.Errorf("group %s: %s", group, strings.Join(list, " "))
			}
		}
		expect(t, "groups", len(done), groups)
		expect(t, "left", q.Depth(), queue.Depth{})
	})
}
