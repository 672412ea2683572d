package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// killer kills a function's process in the middle of an attempt: after the handler has
// run, and before its answer is stored.
type killer struct {
	mu     sync.Mutex
	stack  *stack.Stack   // nil until it has started
	marked map[string]int // by logical ID of each function to kill: the number of answers to let pass before
}

// use makes the functions of a stack known.
func (k *killer) use(s *stack.Stack) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stack = s
}

// mark handles POST /kill/{function}. The query parameter after is the number of answers of
// the function that are stored before the process is killed; the default is 0.
func (k *killer) mark(w http.ResponseWriter, req *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stack == nil {
		http.Error(w, "the functions have not started yet", http.StatusServiceUnavailable)
		return
	}
	after := 0
	if text := req.FormValue("after"); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			http.Error(w, fmt.Sprintf("after is %q; give the number of answers to let pass, such as 1", text), http.StatusBadRequest)
			return
		}
		after = int(n)
	}
	function := req.PathValue("function")
	var all []string
	for _, f := range k.stack.Template().Functions {
		all = append(all, f.LogicalID)
		if f.LogicalID == function {
			if k.marked == nil {
				k.marked = map[string]int{}
			}
			k.marked[function] = after
			when := "before its answer is stored"
			if after > 0 {
				when = fmt.Sprintf("before an answer is stored, after %d other answers have been stored", after)
			}
			_, _ = fmt.Fprintf(w, "the process of the next attempt of %s is killed when its handler has run, %s; "+
				"the lease lasts until the function's timeout and MaxSkew are over\n", function, when)
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
	for function, after := range k.marked {
		for _, p := range k.stack.Emulator().Processes(function) {
			if p.TraceID != r.TraceID {
				continue
			}
			if after > 0 {
				k.marked[function]--
				return nil
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
