package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/internal/ownpages"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
	"github.com/lambdaidem/toolkit/localstack/window"
)

// switchboard lets a person rehearse incidents: it stands between the functions and
// DynamoDB and breaks their calls on demand. Others reach DynamoDB past it. The window's
// page arms faults in the same place.
//
//	POST /table/STATE   STATE is one of those of rehearsal.Faults.SetTable
//	POST /kill/FUNCTION kills the process of that function's next attempt when its handler
//	                    has run, before its answer is stored;
//	                    ?after=N lets N answers be stored first
//	GET /clearings      what the clearing house was told, by downstream key
//	GET /iam            which permissions of their roles the functions have used
type switchboard struct {
	faults   rehearsal.Faults
	window   *window.Window
	page     string // URL of the window's page; empty until it is served
	proxy    *proxy.Proxy
	server   *http.Server
	url      string
	stack    atomic.Pointer[stack.Stack]      // nil until it has started
	clearing atomic.Pointer[clearing.Service] // nil until it has started, and with a user's template
	iam      atomic.Pointer[iam.Checker]      // nil until it has started, and with -no-iam
}

// startSwitchboard listens on a port of loopback; 0 is a free one. between adds the proxy.
func startSwitchboard(port int) (*switchboard, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("the switchboard of rehearsals: %w", err)
	}
	r := &switchboard{url: "http://" + listener.Addr().String()}
	r.window = window.New(&r.faults)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /table/{state}", r.setTable)
	mux.HandleFunc("POST /kill/{function}", r.kill)
	mux.HandleFunc("GET /clearings", r.showClearings)
	mux.HandleFunc("GET /iam", r.showPermissions)
	r.server = &http.Server{Handler: ownpages.Only(mux), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // ends by Close
	return r, nil
}

// between puts the proxy between the functions and DynamoDB. Without a proxy, the
// functions call DynamoDB directly, and no rehearsal is offered.
func (r *switchboard) between(o *emulator.Options) {
	p, err := proxy.Start(o.Endpoint, func(request *proxy.Request) proxy.Fault {
		r.window.Trace(request)
		return r.faults.Fault(request)
	})
	if err == nil {
		r.proxy, o.Endpoint = p, p.URL()
		r.window.Observe(o)
	}
}

func (r *switchboard) setTable(w http.ResponseWriter, req *http.Request) {
	state := req.PathValue("state")
	if err := r.faults.SetTable(state); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintf(w, "the functions now see the table in the state %s\n", state)
}

func (r *switchboard) showClearings(w http.ResponseWriter, _ *http.Request) {
	house := r.clearing.Load()
	if house == nil {
		http.Error(w, "there is no clearing house: this template is not the project's own", http.StatusNotFound)
		return
	}
	effects := house.Effects()
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	for _, key := range slices.Sorted(maps.Keys(effects)) { // a line each, for grep
		if err := encoder.Encode(effects[key]); err != nil { // the client has left
			return
		}
	}
}

func (r *switchboard) showPermissions(w http.ResponseWriter, _ *http.Request) {
	checker := r.iam.Load()
	if checker == nil {
		http.Error(w, "no permissions are checked: up has not started yet, or was started with -no-iam", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	checker.Report(w)
}

// begin makes a stack that has started known, and serves the window's page on a port of
// loopback; 0 is a free one.
func (r *switchboard) begin(s *stack.Stack, port int) error {
	r.clearing.Store(s.Clearing())
	r.iam.Store(s.IAM())
	r.stack.Store(s)
	if r.proxy == nil {
		return nil
	}
	var err error
	r.page, err = r.window.Serve(s, port)
	return err //nolint:wrapcheck // it says what it is about
}

// kill handles POST /kill/{function}. The query parameter after is the number of answers of
// the function that are stored before the process is killed; the default is 0.
func (r *switchboard) kill(w http.ResponseWriter, req *http.Request) {
	s := r.stack.Load()
	if s == nil {
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
	for _, f := range s.Template().Functions {
		all = append(all, f.LogicalID)
	}
	if !slices.Contains(all, function) {
		http.Error(w, fmt.Sprintf("there is no function %q; there are %q", function, all), http.StatusNotFound)
		return
	}
	r.faults.Arm(rehearsal.Once{
		Name: "kill " + function, Kind: rehearsal.Completion, After: after,
		Match: rehearsal.Sent(s.Emulator(), function), Fault: rehearsal.Kill(s.Emulator(), function),
	})
	when := "before its answer is stored"
	if after > 0 {
		when = fmt.Sprintf("before an answer is stored, after %d other answers have been stored", after)
	}
	_, _ = fmt.Fprintf(w, "the process of the next attempt of %s is killed when its handler has run, %s; "+
		"the lease lasts until the function's timeout and MaxSkew are over\n", function, when)
}

// close ends the switchboard, the window and the proxy.
func (r *switchboard) close() {
	_ = r.server.Close()
	_ = r.window.Close()
	if r.proxy != nil {
		_ = r.proxy.Close()
	}
}

// someFunction returns the name of a function that has a route, or else of any.
func someFunction(t *template.Template) string {
	for _, f := range t.Functions {
		if len(f.Routes) > 0 {
			return f.LogicalID
		}
	}
	for _, f := range t.Functions {
		return f.LogicalID
	}
	return "FUNCTION"
}

// guide says how to rehearse.
func (r *switchboard) guide(w io.Writer, s *stack.Stack) {
	if r.proxy == nil {
		return
	}
	_, _ = fmt.Fprintf(w, `
See what happens, as it happens: send requests, break things, and watch requests, processes and records in a browser.

  %[1]s

Rehearse an incident of docs/operate.md: break the functions' calls to DynamoDB. Yours, by idem and the AWS CLI, still pass.

  curl -X POST %[2]s/table/throttled     # ProvisionedThroughputExceededException, with its reason
  curl -X POST %[2]s/table/unreachable   # connections are cut before a request is carried out
  curl -X POST %[2]s/table/lost-replies  # requests are carried out, their replies are lost
  curl -X POST %[2]s/table/works         # ends it

Kill a function in mid-flight: its next attempt dies when the handler has run, before the answer is stored. Send a request,
repeat it until the lease is over (the function's timeout and 2 seconds), and see it run as attempt 2.

  curl -X POST %[2]s/kill/%[3]s

If the handler makes a guarded call (lambdaidem.Do), it dies before the answer of that call is stored. To store that answer
first, let one answer pass: add ?after=1 to the URL.
`, r.page, r.url, someFunction(s.Template()))
	if s.IAM() != nil {
		_, _ = fmt.Fprintf(w, `
The functions may do only what the policies of their roles allow. See which permissions they have used, and which not:

  curl %s/iam
`, r.url)
	}
	if s.Clearing() == nil {
		return
	}
	_, _ = fmt.Fprintf(w, `
Have a function die at its timeout of 10 seconds; and ask the clearing house what it was told, a line for each downstream key.

  curl -i %[2]s/payments -H "Authorization: Bearer $TOKEN" -H 'Idempotency-Key: slow-1' \
    -H 'X-Demo-Hang-Attempts: 1' -H 'Content-Type: application/json' -d '{"amount":1250,"currency":"EUR"}'
  curl %[1]s/clearings
`, r.url, s.URL())
}
