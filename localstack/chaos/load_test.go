//go:build chaos

package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

var (
	duration     = flag.Duration("chaos.duration", time.Minute, "how long functions are killed under load")
	clientCount  = flag.Int("chaos.clients", 1000, "clients at once")
	keyCount     = flag.Int("chaos.keys", 100, "keys at once; the clients share them evenly")
	disturbEvery = flag.Duration("chaos.every", 100*time.Millisecond, "mean time from one kill to the next")
)

// loadTimeout is the functions' Timeout under load. It is short, so that there are many takeovers.
// An attempt that takes longer is killed, and taken over like the others.
const loadTimeout = 3 * time.Second

// TestChaosLoad has 1,000 clients share 100 keys for a minute. Every other key is for a transfer.
// Meanwhile processes of the functions are killed at random, some are stopped until their lease
// has ended, and one in a hundred requests to the database is broken. A client repeats its request
// until it gets a 201. When all clients of a key have theirs, they get a new key.
func TestChaosLoad(t *testing.T) {
	if *keyCount < 1 || *clientCount < *keyCount {
		t.Fatalf("-chaos.clients is %d and -chaos.keys is %d; there must be a key, and a client for each", *clientCount, *keyCount)
	}
	w := newWorld(t, setting{timeout: loadTimeout, killDelay: 3 * loadTimeout})
	var weather weather
	w.wires.otherwise = weather.fault
	running, cancel := context.WithTimeout(t.Context(), *duration)
	defer cancel()
	patient, cancel := context.WithTimeout(t.Context(), *duration+patience)
	defer cancel()

	var clients sync.WaitGroup
	var gaveUp atomic.Int32
	for i := range *keyCount {
		fresh := w.newKey
		if i%2 == 1 {
			fresh = w.newTransfer
		}
		g := newGroup(*clientCount / *keyCount, func() string { return fresh(t) })
		for range g.size {
			clients.Go(func() {
				for running.Err() == nil {
					key, next := g.current()
					if a := w.insist(patient, key, shortDelay); a.Status != http.StatusCreated {
						gaveUp.Add(1)
						return
					}
					g.arrive()
					select {
					case <-next:
					case <-running.Done():
					}
				}
			})
		}
	}
	killed, stopped := w.disturb(running, &weather.atWork)
	clients.Wait()

	t.Logf("killed %d processes in mid-flight, stopped %d past their lease; of %d calls to the database %d were broken",
		killed, stopped, weather.calls.Load(), weather.broken.Load())
	w.report(t)
	// Under policy Rerun no record is stuck beyond its lease.
	if n := gaveUp.Load(); n > 0 {
		t.Errorf("%d clients had no 201 %v after the last kill", n, patience)
	}
	if killed == 0 || w.books(t).Audit().Retaken == 0 {
		t.Error("no attempt died: the run proved nothing")
	}
}

// weather decides what happens to requests to the database under load. It slows down the requests
// of attempts that have their lease, so that more kills hit such attempts.
type weather struct {
	calls, broken atomic.Int32
	atWork        sync.Map // the trace IDs of the invocations that took a lease
}

func (w *weather) fault(kind kind) proxy.Fault {
	w.calls.Add(1)
	if rand.IntN(100) == 0 {
		w.broken.Add(1)
		faults := []proxy.Fault{proxy.LoseRequest, proxy.LoseReply, proxy.CutReplyShort, proxy.FailAfterWrite, proxy.Throttle}
		return faults[rand.IntN(len(faults))]
	}
	if kind == acquire || kind == takeover {
		return w.lease
	}
	return proxy.Slow(rand.N(50*time.Millisecond), rand.N(50*time.Millisecond))
}

// lease passes on a request that may take a lease. If the request succeeds, it enters the
// invocation in atWork.
func (w *weather) lease(c *proxy.Call) {
	reply, err := c.Deliver()
	if err != nil {
		c.Cut()
		return
	}
	if reply.Status == http.StatusOK {
		w.atWork.Store(c.TraceID, true)
	}
	c.Answer(reply)
}

// group is a number of clients that share a key.
type group struct {
	size  int
	fresh func() string

	mu      sync.Mutex
	key     string
	arrived int
	next    chan struct{} // closed when all clients have arrived
}

func newGroup(size int, fresh func() string) *group {
	return &group{size: size, fresh: fresh, key: fresh(), next: make(chan struct{})}
}

// current returns the current key, and a channel that is closed when there is a new one.
func (g *group) current() (string, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.key, g.next
}

// arrive is called by each client that has its 201. The last client's call sets a new key.
func (g *group) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.arrived++; g.arrived == g.size {
		close(g.next)
		g.key, g.arrived, g.next = g.fresh(), 0, make(chan struct{})
	}
}

// disturb sends signals to random busy processes until ctx ends. It stops one in four until the
// process's lease is over, and kills the others. When it returns, no process is stopped any more.
func (w *world) disturb(ctx context.Context, atWork *sync.Map) (killed, stopped int) {
	var asleep sync.WaitGroup
	defer asleep.Wait()
	spared := map[int]bool{} // stopped once: they must live to show what they do when they continue
	for sleep(ctx, rand.N(2**disturbEvery)) {
		victim, found := w.victim(atWork, spared)
		switch {
		case !found:
		case rand.IntN(4) > 0:
			if victim.Signal(syscall.SIGKILL) == nil {
				killed++
			}
		case victim.Signal(syscall.SIGSTOP) == nil:
			stopped++
			spared[victim.PID] = true
			asleep.Go(func() {
				sleep(context.WithoutCancel(ctx), loadTimeout+maxSkew+time.Second)
				_ = victim.Signal(syscall.SIGCONT) // fails if the process was killed meanwhile
			})
		}
	}
	return killed, stopped
}

// victim returns a random busy process that is not spared. Every other time it chooses among the
// processes that hold a lease, if there are any. It returns false if no process qualifies.
func (w *world) victim(atWork *sync.Map, spared map[int]bool) (emulator.Process, bool) {
	var busy, holders []emulator.Process
	for _, p := range w.processes() {
		if p.State != emulator.Busy || spared[p.PID] {
			continue
		}
		busy = append(busy, p)
		if _, holds := atWork.Load(p.TraceID); holds {
			holders = append(holders, p)
		}
	}
	if len(holders) > 0 && rand.IntN(2) == 0 {
		busy = holders
	}
	if len(busy) == 0 {
		return emulator.Process{}, false
	}
	return busy[rand.IntN(len(busy))], true
}

// sleep waits until d has passed or ctx ends. It reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
