package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// rehearsal lets a person rehearse incidents: it stands between the functions and
// DynamoDB and breaks their calls on demand. Others reach DynamoDB past it.
//
//	POST /table/STATE   STATE is one of tableStates
//	POST /kill/FUNCTION kills the process of that function's next attempt, see killer;
//	                    ?after=N lets N answers be stored first
//	GET /clearings      what the clearing house was told, by downstream key
//	GET /iam            which permissions of their roles the functions have used
type rehearsal struct {
	state    atomic.Value // a key of tableStates
	proxy    *proxy.Proxy
	server   *http.Server
	url      string
	killer   killer
	clearing atomic.Pointer[clearing.Service] // nil until it has started, and with a user's template
	iam      atomic.Pointer[iam.Checker]      // nil until it has started, and with -no-iam
}

// tableStates are the states that the table can be put into, and what becomes of
// the functions' calls in each.
var tableStates = map[string]proxy.Fault{
	"works":        nil,
	"throttled":    throttle,
	"unreachable":  proxy.LoseRequest,
	"lost-replies": proxy.LoseReply,
}

// throttle refuses a call like a table whose provisioned capacity is used up.
func throttle(c *proxy.Call) {
	const reason = "TableWriteProvisionedThroughputExceeded"
	c.Answer(proxy.Reply{
		Status: http.StatusBadRequest,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"made by a rehearsal",` +
			`"ThrottlingReasons":[{"reason":"` + reason + `","resource":"arn:aws:dynamodb:us-east-1:000000000000:table/rehearsal"}]}`),
	})
}

// startRehearsal listens on a port of loopback; 0 is a free one. between adds the proxy.
func startRehearsal(port int) (*rehearsal, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("the switchboard of rehearsals: %w", err)
	}
	r := &rehearsal{url: "http://" + listener.Addr().String()}
	r.state.Store("works")
	mux := http.NewServeMux()
	mux.HandleFunc("POST /table/{state}", r.setTable)
	mux.HandleFunc("POST /kill/{function}", r.killer.mark)
	mux.HandleFunc("GET /clearings", r.showClearings)
	mux.HandleFunc("GET /iam", r.showPermissions)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // ends by Close
	return r, nil
}

// between puts the proxy between the functions and DynamoDB. Without a proxy, the
// functions call DynamoDB directly, and no rehearsal is offered.
func (r *rehearsal) between(o *emulator.Options) {
	p, err := proxy.Start(o.Endpoint, func(request *proxy.Request) proxy.Fault {
		if fault := r.killer.fault(request); fault != nil {
			return fault
		}
		return tableStates[r.state.Load().(string)] //nolint:forcetypeassert // it holds strings alone
	})
	if err == nil {
		r.proxy, o.Endpoint = p, p.URL()
	}
}

func (r *rehearsal) setTable(w http.ResponseWriter, req *http.Request) {
	state := req.PathValue("state")
	if _, known := tableStates[state]; !known {
		http.Error(w, fmt.Sprintf("there is no state %q; there are %q", state, slices.Sorted(maps.Keys(tableStates))), http.StatusNotFound)
		return
	}
	r.state.Store(state)
	_, _ = fmt.Fprintf(w, "the functions now see the table in the state %s\n", state)
}

func (r *rehearsal) showClearings(w http.ResponseWriter, _ *http.Request) {
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

func (r *rehearsal) showPermissions(w http.ResponseWriter, _ *http.Request) {
	checker := r.iam.Load()
	if checker == nil {
		http.Error(w, "no permissions are checked: up has not started yet, or was started with -no-iam", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	checker.Report(w)
}

// close ends the switchboard and the proxy.
func (r *rehearsal) close() {
	_ = r.server.Close()
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
func (r *rehearsal) guide(w io.Writer, s *stack.Stack) {
	if r.proxy == nil {
		return
	}
	_, _ = fmt.Fprintf(w, `
Rehearse an incident of docs/operate.md: break the functions' calls to DynamoDB. Yours, by idem and the AWS CLI, still pass.

  curl -X POST %[1]s/table/throttled     # ProvisionedThroughputExceededException, with its reason
  curl -X POST %[1]s/table/unreachable   # connections are cut before a request is carried out
  curl -X POST %[1]s/table/lost-replies  # requests are carried out, their replies are lost
  curl -X POST %[1]s/table/works         # ends it

Kill a function in mid-flight: its next attempt dies when the handler has run, before the answer is stored. Send a request,
repeat it until the lease is over (the function's timeout and 2 seconds), and see it run as attempt 2.

  curl -X POST %[1]s/kill/%[2]s

If the handler makes a guarded call (lambdaidem.Do), it dies before the answer of that call is stored. To store that answer
first, let one answer pass: add ?after=1 to the URL.
`, r.url, someFunction(s.Template()))
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
