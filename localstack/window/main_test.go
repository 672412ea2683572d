package window_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/internal/browsertest"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
	"github.com/lambdaidem/toolkit/localstack/window"
)

// Nothing of a window goes on after Close.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(browsertest.Closing(stopping{m}))
}

// stopping stops the tests' stack when they are over.
type stopping struct{ tests browsertest.Tests }

func (s stopping) Run() int {
	status := s.tests.Run()
	if err := stop(); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		return 1
	}
	return status
}

// The functions' timeout in these tests. A lease lasts 2 seconds longer.
const timeout = 3 * time.Second

var stop = func() error { return nil }

// running starts this project's functions and a window on them once for all tests, and
// returns the URLs of the API and of the page.
func running(t *testing.T) (api, page string) {
	t.Helper()
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return w.api, w.page
}

// written is called after a write to a record of an HTTP request, before the window reads it.
var written atomic.Pointer[func(rehearsal.Access)]

// afterWrite has a function called once, after a write of this kind.
func afterWrite(t *testing.T, kind rehearsal.AccessKind, do func(rehearsal.Access)) {
	t.Helper()
	afterEach(t, kind, func(a rehearsal.Access) {
		written.Store(nil)
		do(a)
	})
}

// afterEach has a function called after every write of this kind: also after one of a request that
// an earlier test has left behind.
func afterEach(t *testing.T, kind rehearsal.AccessKind, do func(rehearsal.Access)) {
	t.Helper()
	each := func(a rehearsal.Access) {
		if a.Kind == kind {
			do(a)
		}
	}
	written.Store(&each)
	t.Cleanup(func() { written.Store(nil) })
}

func interfere(r *proxy.Request) {
	if r.Trace == nil {
		return
	}
	read := r.Trace.Deliver
	r.Trace.Deliver = func(deliver func() (proxy.Reply, error)) (proxy.Reply, error) {
		return read(func() (proxy.Reply, error) {
			reply, err := deliver()
			if do := written.Load(); do != nil {
				(*do)(rehearsal.AccessOf(r))
			}
			return reply, err
		})
	}
}

type world struct {
	api, page string
	stack     *stack.Stack
	faults    *rehearsal.Faults
}

// start starts this project's functions.
var start = sync.OnceValues(func() (world, error) {
	w, err := startStack(stack.Options{Change: func(t *template.Template) {
		for _, f := range t.Functions {
			f.Timeout = timeout
		}
	}})
	if err != nil {
		return world{}, err
	}
	for _, user := range []string{"alice", "bob"} {
		if err := w.stack.OpenAccount(context.Background(), user, "EUR", 1_000_000); err != nil {
			return world{}, err
		}
	}
	return w, nil
})

// startNotes starts the function of a user's own template, whose guards have rare options.
var startNotes = sync.OnceValues(func() (world, error) {
	return startStack(stack.Options{Template: filepath.Join("testdata", "notes", "template.yaml")})
})

// startStack starts a stack and a window on it, both of which stop closes.
func startStack(o stack.Options) (world, error) {
	faults := &rehearsal.Faults{}
	w := window.New(faults)
	var between *proxy.Proxy
	o.Progress, o.FunctionLog, o.MaxProcesses = io.Discard, io.Discard, 4
	o.Emulator = func(o *emulator.Options) {
		var err error
		between, err = proxy.Start(o.Endpoint, func(r *proxy.Request) proxy.Fault {
			w.Trace(r)
			interfere(r)
			return faults.Fault(r)
		})
		if err != nil {
			return // the functions call DynamoDB directly, and the tests fail
		}
		o.Endpoint = between.URL()
		w.Observe(o)
	}
	s, err := stack.Start(context.Background(), o)
	if err != nil {
		return world{}, err
	}
	others := stop
	stop = func() error {
		return errors.Join(w.Close(), s.Stop(), between.Close(), others())
	}
	page, err := w.Serve(s, 0)
	return world{s.URL(), page, s, faults}, err
}
