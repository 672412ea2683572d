package batch_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/batch"
)

var errOwn = errors.New("failed by itself")

// log records what happens in a batch.
type log struct {
	mu      sync.Mutex
	began   []int
	running map[int]bool
	most    int
	clashes []string
}

// begin records that item i begins. It adds a clash if an item with the same group or key is
// running.
func (l *log) begin(items []batch.Item, i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[int]bool{}
	}
	for j := range l.running {
		a, b := items[i], items[j]
		if a.Group != "" && a.Group == b.Group || a.Key != "" && a.Key == b.Key {
			l.clashes = append(l.clashes, fmt.Sprintf("%d beside %d", i, j))
		}
	}
	l.running[i] = true
	l.most = max(l.most, len(l.running))
	l.began = append(l.began, i)
}

func (l *log) end(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, i)
}

// In every batch, the order of groups is kept, duplicates are skipped, and each item gets a
// result.
func TestV2_EveryBatch(t *testing.T) {
	defer goleak.VerifyNone(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", "b", "c"})
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) batch.Item {
			return batch.Item{Group: text.Draw(t, "group"), Key: text.Draw(t, "key"), Content: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "content")}
		}), 0, 12).Draw(t, "items")
		fails := rapid.SliceOfN(rapid.Float64Range(0, 1), len(items), len(items)).Draw(t, "fails")
		o := batch.Options{Concurrency: rapid.IntRange(0, 5).Draw(t, "concurrency"), StopAll: rapid.Bool().Draw(t, "stop all")}

		var l log
		errs := batch.Run(items, o, func(i int) error {
			l.begin(items, i)
			defer l.end(i)
			runtime.Gosched()
			if fails[i] < 0.25 {
				return errOwn
			}
			return nil
		})

		if len(errs) != len(items) || len(l.clashes) > 0 || l.most > max(o.Concurrency, 1) {
			t.Fatalf("%d ends of %d items; %v; %d at a time of %d", len(errs), len(items), l.clashes, l.most, o.Concurrency)
		}
		if sorted := slices.Sorted(slices.Values(l.began)); len(slices.Compact(sorted)) != len(l.began) {
			t.Fatalf("an item began twice: %v", l.began)
		}
		if o.Concurrency <= 1 && !slices.IsSorted(l.began) {
			t.Fatalf("one at a time, the order was %v", l.began)
		}
		for i, item := range items {
			before := func(of func(batch.Item) bool) (failed bool) {
				for j := range i {
					if of(items[j]) && errs[j] != nil {
						failed = true
					}
					if of(items[j]) && slices.Contains(l.began, i) && slices.Contains(l.began, j) && slices.Index(l.began, j) > slices.Index(l.began, i) {
						t.Fatalf("%d began before %d: %v", i, j, l.began)
					}
				}
				return failed
			}
			group := item.Group != "" && before(func(x batch.Item) bool { return x.Group == item.Group })
			same := func(x batch.Item) bool { return item.Key != "" && x.Key == item.Key && x.Content == item.Content }
			twin, first := before(same), slices.IndexFunc(items, same)
			before(func(x batch.Item) bool { return item.Key != "" && x.Key == item.Key })
			began := slices.Contains(l.began, i)
			if duplicate := first >= 0 && first < i; duplicate {
				if began || !group && !o.StopAll && (errs[i] == nil) != (errs[first] == nil) {
					t.Fatalf("%d is a duplicate of %d; it began: %v; the ends are %v", i, first, began, errs)
				}
				continue
			}
			switch {
			case (group || twin) && began:
				t.Fatalf("%d began after a failure that it waited for: %v", i, errs)
			case !group && !twin && !began && !o.StopAll:
				t.Fatalf("%d did not begin: %v", i, errs)
			case began != (errs[i] == nil || errors.Is(errs[i], errOwn)):
				t.Fatalf("%d: began %v, and its end is %v", i, began, errs[i])
			case began && (fails[i] < 0.25) != (errs[i] != nil):
				t.Fatalf("%d ended with %v", i, errs[i])
			}
		}
		failed := slices.IndexFunc(errs, func(err error) bool { return err != nil })
		if o.StopAll && o.Concurrency <= 1 && failed >= 0 && slices.Max(l.began) != failed {
			t.Fatalf("after the failure of %d others began: %v", failed, l.began)
		}
	})
}

// An item that may run does not wait for items of another group.
func TestV2_AGroupDoesNotBlockItsNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := make([]batch.Item, 11)
		for i := range 10 {
			items[i].Group = "long"
		}
		began := time.Now()
		ends := make([]time.Duration, len(items))
		batch.Run(items, batch.Options{Concurrency: 2}, func(i int) error {
			time.Sleep(time.Second)
			ends[i] = time.Since(began)
			return nil
		})
		if ends[10] != time.Second || ends[9] != 10*time.Second {
			t.Errorf("the neighbour ended after %v, the group after %v", ends[10], ends[9])
		}
	})
}

// Run uses the whole Options.Concurrency.
func TestV2_AsManyAtATimeAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		batch.Run(make([]batch.Item, 20), batch.Options{Concurrency: 5}, func(int) error {
			time.Sleep(time.Second)
			return nil
		})
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("20 items of 1 s, 5 at a time, took %v", took)
		}
	})
}

// After Options.May has returned an error, no further item begins, and all remaining items fail
// with that error.
func TestV2_NoTime(t *testing.T) {
	errLate := errors.New("late")
	for _, concurrency := range []int{1, 3} {
		asked, began := 0, 0
		errs := batch.Run(make([]batch.Item, 6), batch.Options{Concurrency: concurrency, May: func() error {
			if asked++; asked == 3 {
				return errLate
			}
			return nil
		}}, func(int) error { return nil })
		for _, err := range errs {
			if err == nil {
				began++
			} else if !errors.Is(err, errLate) {
				t.Errorf("%d at a time: %v", concurrency, err)
			}
		}
		if began != 2 || asked != 3 {
			t.Errorf("%d at a time: %d began, it was asked %d times", concurrency, began, asked)
		}
	}
}

// Each item that does not begin fails with the reason.
func TestV2_WhyNotBegun(t *testing.T) {
	items := []batch.Item{{Group: "a", Key: "1"}, {Group: "a", Key: "2"}, {Group: "b", Key: "1"}, {Group: "b", Key: "1", Content: "other"}, {Key: "1", Content: "other"}, {}}
	fail := func(int) error { return errOwn }
	errs := batch.Run(items, batch.Options{}, fail)
	want := []error{errOwn, batch.ErrGroup, batch.ErrDuplicate, batch.ErrGroup, batch.ErrDuplicate, errOwn}
	if !slices.Equal(errs, want) {
		t.Errorf("got %v\nwant %v", errs, want)
	}
	errs = batch.Run(items, batch.Options{StopAll: true}, fail)
	if !errors.Is(errs[0], errOwn) || !errors.Is(errs[1], batch.ErrStopped) || !errors.Is(errs[5], batch.ErrStopped) {
		t.Errorf("stopping all, got %v", errs)
	}
}

// If a duplicate is skipped because an earlier item of its group failed, this does not affect other
// duplicates of the same item, which succeeded.
func TestV2_DoneIsDone(t *testing.T) {
	items := []batch.Item{{Key: "k"}, {Group: "a", Key: "broken"}, {Group: "a", Key: "k"}, {Key: "k"}}
	errs := batch.Run(items, batch.Options{}, func(i int) error {
		if items[i].Key == "broken" {
			return errOwn
		}
		return nil
	})
	if want := []error{nil, errOwn, batch.ErrGroup, nil}; !slices.Equal(errs, want) {
		t.Errorf("got %v", errs)
	}
}

// An item that calls runtime.Goexit fails, and the other items still run.
func TestV2_Goexit(t *testing.T) {
	for _, concurrency := range []int{1, 2} {
		errs := batch.Run(make([]batch.Item, 4), batch.Options{Concurrency: concurrency}, func(i int) error {
			if i == 1 || i == 3 {
				runtime.Goexit()
			}
			return nil
		})
		if want := []error{nil, batch.ErrDied, nil, batch.ErrDied}; !slices.Equal(errs, want) {
			t.Errorf("%d at a time: got %v", concurrency, errs)
		}
	}
}
