package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// killer kills a function's process in the middle of an attempt: after the handler has
// run, and before its answer is stored.
type killer struct {
	mu     sync.Mutex
	stack  *stack.Stack    // nil until it has started
	marked map[string]bool // functions, by logical ID, whose next attempt dies
}

// use makes the functions of a stack known.
func (k *killer) use(s *stack.Stack) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stack = s
}

// mark handles POST /kill/{function}.
func (k *killer) mark(w http.ResponseWriter, req *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stack == nil {
		http.Error(w, "the functions have not started yet", http.StatusServiceUnavailable)
		return
	}
	function := req.PathValue("function")
	var all []string
	for _, f := range k.stack.Template().Functions {
		all = append(all, f.LogicalID)
		if f.LogicalID == function {
			if k.marked == nil {
				k.marked = map[string]bool{}
			}
			k.marked[function] = true
			_, _ = fmt.Fprintf(w, "the process of the next attempt of %s is killed when its handler has run, before its answer is stored; "+
				"the lease lasts until the function's timeout and MaxSkew are over\n", function)
			return
		}
	}
	http.Error(w, fmt.Sprintf("there is no function %q; there are %q", function, all), http.StatusNotFound)
}

// fault returns the fault that kills the process which made a request, if the request
// completes a record and the process runs a marked function. Otherwise it returns nil.
func (k *killer) fault(r *proxy.Request) proxy.Fault {
	if !completes(r) {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for function := range k.marked {
		for _, p := range k.stack.Emulator().Processes(function) {
			if p.TraceID != r.TraceID {
				continue
			}
			delete(k.marked, function)
			return func(c *proxy.Call) {
				_ = p.Signal(os.Kill) // an error says that the process has ended already
				proxy.LoseRequest(c)
			}
		}
	}
	return nil
}

// completes reports whether a request stores the answer of an attempt. A text within
// the answer does not match, because its quotation marks are escaped.
func completes(r *proxy.Request) bool {
	return (r.Operation == "UpdateItem" || r.Operation == "TransactWriteItems") &&
		bytes.Contains(r.Body, []byte(`"lambdaidem#`)) && bytes.Contains(r.Body, []byte(`"COMPLETED"`))
}
