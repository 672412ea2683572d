//go:build chaos

package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

const (
	// shortTimeout is the functions' Timeout in tests that wait for a lease to end. It is long
	// enough for one attempt on a busy machine.
	shortTimeout = 6 * time.Second
	// maxSkew is the guard's default.
	maxSkew = 2 * time.Second
	// leaseLength is how long the lease of an attempt that died blocks its key.
	leaseLength = shortTimeout + maxSkew
	// patience is the longest time that a test waits for something to happen.
	patience = 60 * time.Second

	payments  = "PaymentsFunction"
	transfers = "TransfersFunction"

	// processes is the maximum number of processes of one function.
	processes = 32
)

// sideBySide is the number of subtests that run in parallel.
const sideBySide = 16

// TestMain runs more tests in parallel than there are processors, because they mostly wait for
// leases to end.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(sideBySide)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// world is the whole running system: clients, gateway, functions, the proxy that breaks their
// connections, and DynamoDB Local.
type world struct {
	stack *stack.Stack
	log   *logbook
	wires *wires
	clients

	opened atomic.Int64 // the sum of all opening balances, in cents
}

// setting has the options by which worlds differ.
type setting struct {
	timeout   time.Duration // the functions' Timeout
	killDelay time.Duration // see emulator.Options
	direct    bool          // the functions reach the database without a proxy
}

func newWorld(t *testing.T, s setting) *world {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) }) // runs last
	w := &world{log: &logbook{}, wires: newWires(), clients: newClients()}
	data := t.TempDir()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var broken *proxy.Proxy
	var err error
	w.stack, err = stack.Start(ctx, stack.Options{
		MaxProcesses: processes,
		NoIAM:        s.direct, // permissions are checked by a proxy
		Progress:     os.Stdout,
		FunctionLog:  w.log,
		Change: func(read *template.Template) {
			for _, f := range read.Functions {
				f.Timeout = s.timeout
			}
		},
		Database: func(o *ddblocal.Options) { o.Own, o.DataDir = true, data },
		Emulator: func(o *emulator.Options) {
			o.KillDelay = s.killDelay
			if s.direct {
				return
			}
			if broken, err = proxy.Start(o.Endpoint, w.wires.choose); err != nil {
				t.Error(err)
				return
			}
			o.Endpoint = broken.URL()
		},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	w.url = w.stack.URL()
	for i := range recipients {
		w.open(t, fmt.Sprintf("till-%d", i), 0)
	}
	t.Cleanup(func() {
		w.closeConnections()
		if err := w.stack.Stop(); err != nil {
			t.Errorf("stop everything: %v", err)
		}
		cancel()
		if broken != nil {
			if err := broken.Close(); err != nil {
				t.Errorf("close the proxy: %v", err)
			}
		}
		if t.Failed() {
			w.keepLog(t)
		}
	})
	return w
}

// report audits everything that happened in this world, and logs the counts. It fails the test if
// the audit finds a breach.
func (w *world) report(t *testing.T) {
	t.Helper()
	report := w.books(t).Audit()
	events := w.log.counts("")
	t.Logf("what clients got, and what was paid:\n%s\nwarnings of the guard:\n  %-22s %8d\n  %-22s %8d\n  %-22s %8d\n  %-22s %8d", report,
		"takeovers", events[lambdaidem.EventTakenOver],
		"lost leases", events[lambdaidem.EventLeaseLost],
		"uncertain", events[lambdaidem.EventUncertain],
		"store errors", events[lambdaidem.EventStoreError])
	if misuses := w.stack.Clearing().Misuses(); len(misuses) > 0 {
		t.Errorf("the clearing house was misused %d times: %q", len(misuses), misuses[0])
	}
	if len(report.Findings) > 0 {
		t.Errorf("the audit found %d breaches of the contract", len(report.Findings))
	}
}

// warmUp starts processes of the functions. Without it, the parallel tests would start all of them
// at once, and the starts would count in the times that the tests measure.
func (w *world) warmUp(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for range sideBySide {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			w.insist(ctx, w.newKey(t), func() headers { return headers{"X-Demo-Delay-Ms": "500"} })
			w.insist(ctx, w.newTransfer(t), noHeaders)
		})
	}
	all.Wait()
}

// keepLog writes the functions' log to a file that outlives the test.
func (w *world) keepLog(t *testing.T) {
	t.Helper()
	//nolint:usetesting // it is to be read when the test is over
	path := filepath.Join(os.TempDir(), "lambdaidem-chaos-"+t.Name()+".log")
	if err := os.WriteFile(path, w.log.bytes(), 0o600); err != nil {
		t.Errorf("keep the functions' log: %v", err)
		return
	}
	t.Logf("what the functions logged is in %s", path)
}

// signal sends a signal to the process that made a request.
func (w *world) signal(t *testing.T, r proxy.Request, signal syscall.Signal) {
	t.Helper()
	if err := w.processOf(t, r).Signal(signal); err != nil {
		t.Fatalf("signal %v: %v", signal, err)
	}
}

func (w *world) processOf(t *testing.T, r proxy.Request) emulator.Process {
	t.Helper()
	for _, p := range w.processes() {
		if p.TraceID == r.TraceID {
			return p
		}
	}
	t.Fatalf("no process has the trace id %s of %s", r.TraceID, r.Operation)
	panic("unreachable")
}

// processes returns the processes of the functions that the tests call.
func (w *world) processes() []emulator.Process {
	return slices.Concat(w.stack.Emulator().Processes(payments), w.stack.Emulator().Processes(transfers))
}

// reached waits until a gate holds a request, and returns the request.
func reached(t *testing.T, g *proxy.Gate) proxy.Request {
	t.Helper()
	select {
	case r := <-g.Reached():
		return r
	case <-time.After(patience):
		t.Fatalf("nothing reached the gate within %v", patience)
		panic("unreachable")
	}
}

// eventually waits until holds returns true. It fails the test when patience ends.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
