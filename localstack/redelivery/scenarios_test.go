package redelivery

import (
	"sync"
	"syscall"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// scenario is one way of redelivering messages.
type scenario struct {
	name    string
	batches bool // the source must deliver batches of several messages
	sent    []Message
	play    func(t *testing.T, w *world)
	runs    map[string]int // expected number of runs of each message
}

var scenarios = []scenario{
	{
		name: "a whole batch", sent: plain("a1", "a2", "b1"),
		play: func(t *testing.T, w *world) {
			for range 3 {
				wantNames(t, w.deliverAll(t, "a1", "a2", "b1"), nil)
			}
		},
		runs: map[string]int{"a1": 1, "a2": 1, "b1": 1},
	},
	{
		name: "a part of it", sent: with(plain("a1", "b1", "b2", "c1"), "b1", Fail, Panic),
		play: func(t *testing.T, w *world) {
			again := w.deliverAll(t, "a1", "b1", "b2", "c1")
			switch {
			case w.source.stream: // everything from the first failure on
				wantNames(t, again, []string{"b1", "b2", "c1"})
			case w.source.ordered: // b2 may not run before b1
				wantNames(t, again, []string{"b1", "b2"})
			default:
				wantNames(t, again, []string{"b1"})
			}
			w.settle(t, again...)
		},
		runs: map[string]int{"a1": 1, "b1": 3, "b2": 1, "c1": 1},
	},
	{
		name: "out of order", sent: plain("a1", "a2", "b1", "b2", "a3"),
		play: func(t *testing.T, w *world) {
			first := []string{"b1", "a1", "b2", "a2"}
			if !w.source.ordered {
				first = []string{"b2", "a2", "a1", "b1"}
			}
			wantNames(t, w.deliverAll(t, first...), nil)
			wantNames(t, w.deliverAll(t, "a2", "b2", "a3", "a1", "b1"), nil) // b1 and a1 are already done, so their late positions don't matter
			wantNames(t, w.deliverAll(t, "a3", "a2", "a1"), nil)
		},
		runs: map[string]int{"a1": 1, "a2": 1, "b1": 1, "b2": 1, "a3": 1},
	},
	{
		name: "twice in one batch", batches: true, sent: with(plain("a1", "b1", "b2"), "b1", Fail),
		play: func(t *testing.T, w *world) {
			d := w.deliver(t, "a1", "b1", "a1", "b1", "b1", "b2")
			want := []string{"b1"}
			if w.source.ordered {
				want = append(want, "b2")
			}
			wantNames(t, d.Reported, want)
			d = w.deliver(t, "b1", "b2", "b2", "b1", "a1", "a1")
			wantNames(t, d.Reported, nil)
		},
		runs: map[string]int{"a1": 1, "b1": 2, "b2": 1},
	},
	{
		name: "to two processes at a time", sent: with(plain("a1", "a2"), "a1", Wait),
		play: func(t *testing.T, w *world) {
			var both sync.WaitGroup
			var first, second []string
			both.Go(func() { first = w.deliverAll(t, "a1", "a2") })
			w.awaitRun(t, "a1", 1)
			both.Go(func() {
				second = w.deliverAll(t, "a1", "a2")
				w.open(t, "a1")
			})
			if w.source.kind != SQS { // the guard reports a queue's message at once; for other sources, it waits until the first attempt ends
				eventually(t, "two processes have it", func() bool { return len(w.busy(t)) == 2 })
				w.open(t, "a1")
			}
			both.Wait()
			wantNames(t, first, nil)
			switch {
			case w.source.kind != SQS:
				wantNames(t, second, nil)
			case w.source.ordered:
				wantNames(t, second, []string{"a1", "a2"})
			default:
				wantNames(t, second, []string{"a1"})
			}
			w.settle(t, second...)
		},
		runs: map[string]int{"a1": 1, "a2": 1},
	},
	{
		name: "a crash in the middle", sent: with(plain("a1", "b1", "b2", "c1"), "b1", Crash),
		play: func(t *testing.T, w *world) {
			again := w.deliverAll(t, "a1", "b1", "b2", "c1")
			if w.source.single {
				wantNames(t, again, []string{"b1"})
			} else {
				wantNames(t, again, []string{"a1", "b1", "b2", "c1"})
			}
			w.settle(t, again...)
			wantNames(t, w.deliverAll(t, "a1", "b1", "b2", "c1"), nil)
		},
		runs: map[string]int{"a1": 1, "b1": 2, "b2": 1, "c1": 1},
	},
	{
		name: "killed in the middle", sent: with(plain("a1", "b1", "b2"), "b1", Wait, Succeed),
		play: func(t *testing.T, w *world) {
			var first sync.WaitGroup
			var again []string
			first.Go(func() { again = w.deliverAll(t, "a1", "b1", "b2") })
			w.awaitRun(t, "b1", 1)
			w.kills++
			if err := w.emulator.Processes(function)[0].Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			first.Wait()
			if w.source.single {
				wantNames(t, again, []string{"b1"})
			} else {
				wantNames(t, again, []string{"a1", "b1", "b2"})
			}
			w.settle(t, again...)
		},
		runs: map[string]int{"a1": 1, "b1": 2, "b2": 1},
	},
	{
		name: "an answer that is lost", sent: with(plain("a1", "a2", "b1"), "a2", Vanish),
		play: func(t *testing.T, w *world) {
			again := w.deliverAll(t, "a1", "a2", "b1")
			if w.source.single {
				wantNames(t, again, []string{"a2"})
			} else {
				wantNames(t, again, []string{"a1", "a2", "b1"})
			}
			wantNames(t, w.deliverAll(t, again...), nil) // all of them were done
		},
		runs: map[string]int{"a1": 1, "a2": 1, "b1": 1},
	},
	{
		name: "no time left", sent: with(plain("a1", "b1", "b2", "a2"), "b1", Hang),
		play: func(t *testing.T, w *world) {
			again := w.deliverAll(t, "a1", "b1", "b2", "a2")
			if w.source.single {
				wantNames(t, again, []string{"b1"})
			} else {
				wantNames(t, again, []string{"a1", "b1", "b2", "a2"})
			}
			w.settle(t, again...)
		},
		runs: map[string]int{"a1": 1, "b1": 2, "b2": 1, "a2": 1},
	},
	{
		name: "what always fails", sent: append(with(plain("a1", "a2", "b1"), "a1", Refuse, Panic), Message{Name: "b2", Group: "b", Then: Refuse}, Message{Name: "c1", Group: "c", Deeds: []Deed{Fail, Refuse}}),
		play: func(t *testing.T, w *world) {
			all := []string{"a1", "a2", "b1", "b2", "c1"}
			for range 3 {
				w.deliverAll(t, all...)
			}
			last := w.deliverAll(t, all...)
			if w.source.stream {
				wantNames(t, last, []string{"b2", "c1"})
			} else {
				wantNames(t, last, []string{"b2"})
			}
			w.settle(t, "a1", "a2", "b1", "c1") // b2 is given up
		},
		runs: map[string]int{"a1": 3, "a2": 1, "b1": 1, "b2": 4, "c1": 3},
	},
	{
		name: "two processes after a crash", sent: with(plain("a1", "a2"), "a1", Crash, Crash),
		play: func(t *testing.T, w *world) {
			w.deliverAll(t, "a1", "a2")
			for range 2 {
				w.awaitLeases(t) // so that both processes find a dead attempt
				w.twice(t, "a1", "a2")
			}
			w.settle(t, "a1", "a2")
		},
		runs: map[string]int{"a1": 3, "a2": 1},
	},
}

// TestV2_Redelivery plays every scenario with every source.
func TestV2_Redelivery(t *testing.T) {
	t.Parallel()
	for _, s := range sources {
		for _, sc := range scenarios {
			if sc.batches && s.single {
				continue // each event of this source has one message
			}
			t.Run(s.name+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, s, sc.sent, nil)
				sc.play(t, w)
				w.audit(t)
				w.wantRuns(t, sc.runs)
			})
		}
	}
}

// TestV2_SomeAtATime checks that messages of other groups run while a message waits, and that in
// an ordered source later messages of its own group don't.
func TestV2_SomeAtATime(t *testing.T) {
	t.Parallel()
	for _, s := range sources {
		if s.single {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, with(plain("a1", "a2", "b1"), "a1", Wait), map[string]string{ConcurrencyVariable: "4"})
			var first sync.WaitGroup
			first.Go(func() { wantNames(t, w.deliverAll(t, "a1", "a2", "b1"), nil) })
			eventually(t, "b1 is done", func() bool { return w.counts(t, []string{"b1"})["b1"].Effects == 1 })
			now := w.counts(t, []string{"a1", "a2"})
			if now["a1"].Effects > 0 {
				t.Error("a1 was to wait at its gate")
			}
			if s.ordered && len(now["a2"].Runs) > 0 {
				t.Error("a2 began before a1 had ended")
			}
			w.open(t, "a1")
			first.Wait()
			w.audit(t)
			w.wantRuns(t, map[string]int{"a1": 1, "a2": 1, "b1": 1})
		})
	}
}

// TestV2_AuditFindsAnUnguardedConsumer switches the guard off. Two deliveries then have two
// effects, and the audit must report them.
func TestV2_AuditFindsAnUnguardedConsumer(t *testing.T) {
	t.Parallel()
	for _, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, plain("a1"), map[string]string{lambdaidem.SwitchOff: "true"})
			w.deliverAll(t, "a1")
			w.deliverAll(t, "a1")
			wantFindings(t, w.books(t).Audit(), "a1 had 2 effects, by 2 runs; want 1 (G1)", "group a committed [a1 a1]; want [a1] (V2)", "a1 was done, and ran again (V2)")
		})
	}
}
