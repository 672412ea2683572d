package redelivery

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 1, "what the random round's plan is drawn from")

// dice is a source of random numbers that several goroutines may use.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) chance(percent int) bool { return d.below(100) < percent }

func (d *dice) duration(most time.Duration) time.Duration {
	return time.Duration(d.below(int(most) + 1))
}

func (d *dice) shuffle(n int, swap func(i, j int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.r.Shuffle(n, swap)
}

// plan returns 42 messages in six groups, some of whose handlers fail or kill their process.
func plan(d *dice) []Message {
	const count, groups = 42, 6
	troubles := []Message{
		{Deeds: []Deed{Crash}}, {Deeds: []Deed{Fail, Crash}}, {Deeds: []Deed{Hang}}, {Deeds: []Deed{Vanish}}, {Deeds: []Deed{Vanish}}, {Deeds: []Deed{Panic, Vanish}},
		{Deeds: []Deed{Fail}}, {Deeds: []Deed{Refuse}}, {Deeds: []Deed{Panic}}, {Deeds: []Deed{Fail, Fail}}, {Deeds: []Deed{Refuse, Panic, Fail}},
		{Then: Refuse}, {Deeds: []Deed{Panic}, Then: Fail},
	}
	all := make([]Message, count)
	copy(all, troubles)
	d.shuffle(count, func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].Group = string(rune('a' + d.below(groups)))
		all[i].Name = fmt.Sprintf("%s%d", all[i].Group, i)
	}
	return all
}

// TestV2_RandomRound delivers 42 messages in random ways that their source allows, while handlers
// fail and processes die, until all messages are done or given up.
func TestV2_RandomRound(t *testing.T) {
	t.Parallel()
	for i, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			randomRound(t, s, uint64(i), nil)
		})
		if !s.single {
			t.Run(s.name+", some at a time", func(t *testing.T) {
				t.Parallel()
				randomRound(t, s, uint64(len(sources)+i), map[string]string{ConcurrencyVariable: "4"})
			})
		}
	}
}

func randomRound(t *testing.T, s source, stream uint64, env map[string]string) {
	t.Helper()
	t.Logf("-args -seed=%d", *seed)
	d := &dice{r: rand.New(rand.NewPCG(*seed, stream))}
	w := newWorld(t, s, plan(d), env)
	over := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() { w.killNowAndThen(t, over) })
	if s.stream {
		consumeStream(t, w, d)
	} else {
		newMailbox(w, d).consume(t)
	}
	close(over)
	killer.Wait()
	w.audit(t)
	if w.kills == 0 {
		t.Error("no process was killed")
	}
}

// killNowAndThen kills a busy process with SIGKILL after every few deliveries, at any point of
// its work, three times at most.
func (w *world) killNowAndThen(t *testing.T, over <-chan struct{}) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for after := 3; w.kills < 3; {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		if w.answered() < after {
			continue
		}
		if busy := w.busy(t); len(busy) > 0 && busy[0].Signal(syscall.SIGKILL) == nil {
			w.mu.Lock()
			w.kills++
			w.mu.Unlock()
			after = w.answered() + 5
		}
	}
}
