// Package window serves a page that shows, as a live sequence diagram, what every HTTP
// request, every process and every call of DynamoDB does, and how the records change. The
// page has controls that send requests and break things at the dangerous moments.
//
// A [Window] observes an emulator and the proxy between the functions and DynamoDB:
//
//	w := window.New(&faults)
//	s, err := stack.Start(ctx, stack.Options{Emulator: func(o *emulator.Options) {
//		p, err := proxy.Start(o.Endpoint, func(r *proxy.Request) proxy.Fault {
//			w.Trace(r)
//			return faults.Fault(r)
//		})
//		o.Endpoint = p.URL()
//		w.Observe(o)
//	}})
//	url, err := w.Serve(s, 0)
//
// The page listens on 127.0.0.1 alone. Other web pages can't read it or use its controls.
package window

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// Window observes a stack and serves the page.
type Window struct {
	faults  *rehearsal.Faults
	history *history

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // sends, stories, timers and handlers
	server *http.Server
	client *http.Client // the client that the page's requests come from

	summing sync.Mutex // held while a key is summed up; taken before telling
	telling sync.Mutex // held while the state of the controls is told; taken before mu

	mu         sync.Mutex
	closed     bool
	stack      *stack.Stack              // nil before Serve
	exchanges  []*exchange               // the latest maxExchanges, the oldest first
	processes  map[int]*process          // by process id
	named      map[string]int            // by function: how many processes have got a number
	told       int                       // how many stories have been told
	count      int                       // how many HTTP requests there have been
	sends      map[string]*send          // by their ids: those under way
	leases     map[string]*lease         // by record: those whose end is waited for
	attributes map[string]attributeNames // by the name of the table; the maps never change
	tallies    []*tally                  // the latest maxTallies, the oldest first
	most       int                       // the maximum number of processes of a function
	observes   bool                      // Observe was called
	controls   controls
}

// New returns a Window. Its controls arm the given faults.
func New(faults *rehearsal.Faults) *Window {
	ctx, cancel := context.WithCancel(context.Background())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // the emulator is on this machine
	transport.MaxIdleConnsPerHost = crowd
	w := &Window{
		faults: faults, history: newHistory(ctx), ctx: ctx, cancel: cancel, client: &http.Client{Transport: transport},
		processes: map[int]*process{}, named: map[string]int{}, sends: map[string]*send{}, leases: map[string]*lease{},
		attributes: map[string]attributeNames{},
	}
	for _, p := range []sequence.Party{ours, others, database, gateway, house, world} {
		w.history.party(p)
	}
	faults.OnChange(w.tellState)
	w.tellState()
	return w
}

// The parties beside the processes.
var (
	ours     = sequence.Party{ID: "client", Name: "client", Kind: sequence.Client}
	others   = sequence.Party{ID: "other-client", Name: "another client", Kind: sequence.Client}
	gateway  = sequence.Party{ID: "gateway", Name: "Lambda", Kind: sequence.Service}
	database = sequence.Party{ID: "database", Name: "DynamoDB", Kind: sequence.Database}
	world    = sequence.Party{ID: "world", Name: "world", Kind: sequence.World}
)

// Observe has the window observe the emulator that is started with these options.
func (w *Window) Observe(o *emulator.Options) {
	o.Middleware, o.Observe = w.watchRequests, w.watchProcesses
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most, w.observes = o.MaxProcesses, true
}

// Serve serves the page on a port of 127.0.0.1, where 0 stands for a free one, and returns
// its URL. The page controls the given stack, which must be the one that the window
// observes. The error says that the port can't be listened on.
func (w *Window) Serve(s *stack.Stack, port int) (string, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", fmt.Errorf("the window: %w", err)
	}
	w.mu.Lock()
	w.stack = s
	w.controls.routes = routesOf(s)
	observes := w.observes
	w.mu.Unlock()
	if c := s.Clearing(); c != nil && observes {
		c.OnCall(w.clears)
	}
	w.tellState()
	address := listener.Addr().(*net.TCPAddr)
	w.server = &http.Server{Handler: w.handler(), ReadHeaderTimeout: time.Minute}
	w.tasks.Go(func() { _ = w.server.Serve(listener) }) // ends with Close
	return "http://" + address.String(), nil
}

// Close ends the page, the requests that it has sent and its stories, and returns when
// nothing of them runs any more. Close it before the stack.
func (w *Window) Close() error {
	w.mu.Lock()
	w.closed = true
	for _, l := range w.leases {
		l.stop()
	}
	w.mu.Unlock()
	w.cancel()
	var err error
	if w.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if w.server.Shutdown(ctx) != nil {
			err = w.server.Close()
		}
	}
	w.tasks.Wait()
	w.client.CloseIdleConnections()
	return err //nolint:wrapcheck // it never fails
}

// farewell is how long Close waits for pages to take what they are being sent.
const farewell = time.Second

// errClosed means that the window has been closed.
var errClosed = errors.New("the window is closed")

// run runs a task that Close waits for. It returns errClosed if the window is closed.
func (w *Window) run(task func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	w.tasks.Go(task)
	return nil
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shortName returns the name of a function or a table without the word that its logical ID
// ends in: "payments" for PaymentsFunction.
func shortName(logicalID, ending string) string {
	name := strings.TrimSuffix(logicalID, ending)
	if name == "" {
		name = logicalID
	}
	return strings.ToLower(name[:1]) + name[1:]
}
