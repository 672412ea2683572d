package window

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// controls is the state of the page's controls. It is guarded by Window.mu.
type controls struct {
	routes  []route
	last    request   // what was sent last, to be repeated
	payment string    // id of the latest payment
	deaf    bool      // the client hangs up before the next answer
	busy    int       // requests and stories under way
	struck  string    // the fault that struck last, since a request was sent
	story   string    // the story that is being played
	look    string    // what to look for in the diagram
	waiting string    // what is waited for; empty: nothing
	until   time.Time // how long
}

// State is what the page shows of the controls.
type State struct {
	Armed   []string `json:"armed"`   // names of faults that will strike
	Busy    bool     `json:"busy"`    // something is under way
	Story   string   `json:"story"`   // the story that is being played; empty: none
	Look    string   `json:"look"`    // what to look for in the diagram
	Waiting string   `json:"waiting"` // what is waited for; empty: nothing
	Until   int64    `json:"until"`   // how long, in epoch milliseconds
	Repeat  bool     `json:"repeat"`  // there is a request to repeat
}

// tellState sends the state to the pages.
func (w *Window) tellState() {
	w.telling.Lock() // so that no earlier state is told after a later one
	defer w.telling.Unlock()
	armed := w.faults.Armed() // takes a lock that must not be taken under w.mu
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &w.controls
	if c.deaf {
		armed = append(armed, faultResponse)
	}
	s := State{Armed: armed, Busy: c.busy > 0, Story: c.story, Look: c.look, Waiting: c.waiting, Repeat: c.last.URL != ""}
	if c.waiting != "" {
		s.Until = c.until.UnixMilli()
	}
	w.history.setState(s)
}

// update changes the state of the controls and tells the pages.
func (w *Window) update(change func(c *controls)) {
	w.mu.Lock()
	change(&w.controls)
	w.mu.Unlock()
	w.tellState()
}

// notice takes what later requests need out of an answer.
func (c *controls) notice(x *exchange, a *recorder) {
	var made struct{ ID string }
	if a.status == http.StatusCreated && strings.HasSuffix(x.request.URL, "/payments") && json.Unmarshal(a.body.Bytes(), &made) == nil && made.ID != "" {
		c.payment = made.ID
	}
}

// route is a route that the form can send to.
type route struct {
	Label  string // as the page shows it
	Method string
	URL    string // of the API, without a path
	Path   string
	header string // of the token; empty: the route asks for none
}

// routesOf returns the routes of a stack's APIs, and its function URLs.
func routesOf(s *stack.Stack) []route {
	urls := s.Emulator().URLs()
	var all []route
	for _, f := range s.Template().Functions {
		for _, r := range f.Routes {
			one := route{Label: fmt.Sprintf("%s (%s)", r.Key(), f.LogicalID), Method: r.Method, URL: urls[r.API], Path: r.Path}
			if r.Method == "" || r.Method == "ANY" {
				one.Method = http.MethodPost
			}
			if r.Path == "" {
				one.Path = "/"
			}
			if r.Authorizer != nil {
				one.header = r.Authorizer.Header
			}
			all = append(all, one)
		}
		if f.URL != nil {
			all = append(all, route{Label: "function URL (" + f.LogicalID + ")", Method: http.MethodPost, URL: urls[f.LogicalID], Path: "/"})
		}
	}
	slices.SortStableFunc(all, func(a, b route) int { // what a guard guards comes first
		return strings.Compare(guardedFirst(a.Method), guardedFirst(b.Method))
	})
	return all
}

func guardedFirst(method string) string {
	if method == http.MethodPost || method == http.MethodPatch {
		return ""
	}
	return method
}

// form is what the page's form says about a request.
type form struct {
	Sample string `json:"sample"` // payment, refund or transfer; empty: the other fields say what to send
	Policy string `json:"policy"` // of a transfer: rerun or hold
	Key    string `json:"key"`

	Route  int    `json:"route"` // number of a route
	Path   string `json:"path"`
	Body   string `json:"body"`
	Caller string `json:"caller"` // whom the token names
}

const (
	sampleCaller = "alice"
	isJSON       = "application/json"
)

// request returns the request that a form asks for.
func (w *Window) request(f form) (request, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Sample == "" {
		return w.freeRequest(f)
	}
	r := request{Method: http.MethodPost, Key: f.Key, Header: http.Header{
		"Content-Type": {isJSON}, "Authorization": {"Bearer " + stack.Token(sampleCaller)},
	}}
	base := w.stack.URL()
	switch f.Sample {
	case "payment":
		r.URL, r.Body = base+"/payments", `{"amount":1250,"currency":"EUR"}`
	case "refund":
		if w.controls.payment == "" {
			return r, errors.New("there is no payment to refund yet: send a payment first")
		}
		r.URL, r.Body = base+"/payments/"+w.controls.payment+"/refunds", `{"amount":400}`
	case "transfer":
		r.URL, r.Body = base+"/transfers", `{"to":"bob","amount":500,"currency":"EUR","reference":"rent"}`
		if f.Policy == "hold" {
			r.Header.Set("X-Demo-Policy", "hold")
		}
	default:
		return r, fmt.Errorf("there is no sample %q; there are payment, refund and transfer", f.Sample)
	}
	return r, nil
}

// freeRequest returns the request that the free form asks for. The caller has w.mu.
func (w *Window) freeRequest(f form) (request, error) {
	if f.Route < 0 || f.Route >= len(w.controls.routes) {
		return request{}, errors.New("choose a route: the template has none, or no such one")
	}
	to := w.controls.routes[f.Route]
	if !strings.HasPrefix(f.Path, "/") {
		return request{}, fmt.Errorf("the path is %q; begin it with a slash", f.Path)
	}
	r := request{Method: to.Method, URL: to.URL + f.Path, Key: f.Key, Body: f.Body, Header: http.Header{}}
	if json.Valid([]byte(f.Body)) {
		r.Header.Set("Content-Type", isJSON)
	}
	if to.header != "" {
		r.Header.Set(to.header, "Bearer "+stack.Token(f.Caller))
	}
	return r, nil
}

// begin runs a task for the page. While it runs, the page shows that something is under way.
func (w *Window) begin(look string, task func(ctx context.Context) error) error {
	w.update(func(c *controls) { c.busy, c.look, c.struck = c.busy+1, "", "" })
	err := w.run(func() {
		err := task(w.ctx)
		w.update(func(c *controls) {
			c.busy--
			if c.story == "" && look != "" && c.struck != faultLate { // overtake says it in the end
				c.look = cmp.Or(lookFor(c.struck), look)
			}
			if err != nil && w.ctx.Err() == nil {
				c.look = "It did not work: " + err.Error()
			}
		})
	})
	if err != nil {
		w.update(func(c *controls) { c.busy-- })
	}
	return err
}

// sendForm sends what a form asks for.
func (w *Window) sendForm(f form) error {
	r, err := w.request(f)
	if err != nil {
		return err
	}
	return w.sendOnce(r, lookSend)
}

// sendOnce sends a request, which can be repeated afterwards.
func (w *Window) sendOnce(r request, look string) error {
	deaf := false
	w.update(func(c *controls) {
		c.last, deaf, c.deaf = r, c.deaf, false
	})
	if deaf {
		look = lookFor(faultResponse)
	}
	return w.begin(look, func(ctx context.Context) error {
		_, err := w.do(ctx, r, deaf)
		return err
	})
}

// repeat sends the last request again: as often as is said, or with another body.
func (w *Window) repeat(times int, change bool) error {
	w.mu.Lock()
	r := w.controls.last
	w.mu.Unlock()
	if r.URL == "" {
		return errors.New("there is nothing to repeat: send a request first")
	}
	if times > 1 {
		return w.begin(lookMany, func(ctx context.Context) error {
			w.doTimes(ctx, r, min(times, crowd)) // the sum is in the diagram
			return nil
		})
	}
	if change {
		r.Body = otherBody(r.Body)
		return w.begin(lookOther, func(ctx context.Context) error {
			_, err := w.do(ctx, r, false)
			return err
		})
	}
	return w.sendOnce(r, lookRepeat)
}

// The names of the faults that the page can arm.
const (
	faultKill       = "kill"
	faultLock       = "lock"
	faultCompletion = "completion"
	faultResponse   = "response"
	faultLate       = "late"
)

// setFault arms a fault, or disarms it if it is armed.
func (w *Window) setFault(name string) error {
	if name == faultResponse {
		w.update(func(c *controls) { c.deaf = !c.deaf })
		return nil
	}
	if slices.Contains(w.faults.Armed(), name) {
		w.faults.Disarm(name)
		return nil
	}
	return w.arm(name)
}

func (w *Window) arm(name string) error {
	o := rehearsal.Once{Name: name, Kind: rehearsal.Completion, Match: w.ofRequest}
	switch name {
	case faultKill:
		var functions []string
		for _, f := range w.stack.Template().Functions {
			functions = append(functions, f.LogicalID)
		}
		o.Fault = rehearsal.Kill(w.stack.Emulator(), functions...)
	case faultLock:
		o.Kind, o.Fault = rehearsal.Lock, proxy.LoseReply
	case faultCompletion:
		o.Fault = proxy.LoseReply
	case faultLate:
		o.Fault = w.delay
	default:
		return fmt.Errorf("there is no fault %q; there are %q", name, []string{faultKill, faultLock, faultCompletion, faultResponse, faultLate})
	}
	strikes := o.Fault
	o.Fault = func(c *proxy.Call) {
		w.update(func(c *controls) { c.struck = name })
		strikes(c)
	}
	w.faults.Arm(o)
	return nil
}

// disarm takes back everything that the page has armed.
func (w *Window) disarm() {
	for _, f := range pageFaults {
		w.faults.Disarm(f.Name)
	}
	w.update(func(c *controls) { c.deaf = false })
}

// ofRequest selects the calls of DynamoDB that belong to the record of an HTTP request: not
// those of functions behind queues, nor those of guarded calls inside a handler.
func (w *Window) ofRequest(r *proxy.Request, a rehearsal.Access) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.exchange(r.TraceID)
	return x != nil && (x.record == "" || x.record == a.Record)
}

// delay is the fault that holds a request on its way until the lease of its attempt is over
// and another attempt has finished. Further tries of the same attempt are lost.
func (w *Window) delay(c *proxy.Call) {
	record := rehearsal.AccessOf(&c.Request).Record
	w.mu.Lock()
	x := w.exchange(c.TraceID)
	r := x.request
	w.mu.Unlock()
	w.loseTries(c.TraceID)
	gate := proxy.HoldRequest()
	if err := w.run(func() { w.overtake(gate, r, x.label, record) }); err != nil {
		proxy.LoseRequest(c)
		return
	}
	w.history.add(sequence.Event{From: world.ID, Request: x.label, Kind: sequence.Note,
		Text: "the network holds up the request that stores the answer, for longer than the lease"})
	gate.Fault(c)
}

// faultTries is the name of the fault that loses further tries of a request that is held up.
const faultTries = "late, further tries"

// loseTries loses all further completions of an invocation.
func (w *Window) loseTries(traceID string) {
	w.faults.Arm(rehearsal.Once{
		Name: faultTries, Kind: rehearsal.Completion,
		Match: func(r *proxy.Request, _ rehearsal.Access) bool { return r.TraceID == traceID },
		Fault: func(c *proxy.Call) {
			w.loseTries(traceID)
			proxy.Swallow(c)
		},
	})
}

// overtake repeats a request when the lease of its record is over, and then lets the request
// to DynamoDB go that the first attempt has sent and that a gate holds.
func (w *Window) overtake(gate *proxy.Gate, r request, label, record string) {
	select {
	case <-gate.Reached():
	case <-w.ctx.Done():
		return
	}
	w.update(func(c *controls) { c.busy++ })
	if err := w.outlast(w.ctx, r, record); err == nil {
		w.history.add(sequence.Event{From: world.ID, Request: label, Kind: sequence.Note, Text: "the request that was held up arrives at DynamoDB"})
	}
	_, _ = gate.Open() // what comes of it is in the diagram
	w.faults.Disarm(faultTries)
	w.update(func(c *controls) {
		c.busy--
		if c.story == "" {
			c.look = lookFor(faultLate)
		}
	})
}

// outlast waits for the end of a record's lease, and repeats a request until no lease is in
// its way.
func (w *Window) outlast(ctx context.Context, r request, record string) error {
	if end, ok := w.leaseEnd(record); ok {
		w.update(func(c *controls) { c.waiting, c.until = "Waiting for the lease to end, to repeat the request", end })
		err := pause(ctx, time.Until(end))
		w.update(func(c *controls) { c.waiting = "" })
		if err != nil {
			return err
		}
	}
	for {
		a, err := w.do(ctx, r, false)
		if err != nil || a.code != "idempotency_in_progress" {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// recordOf returns the record that the latest exchange of a key has locked, or "".
func (w *Window) recordOf(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range slices.Backward(w.exchanges) {
		if x.request.Key == key && x.record != "" {
			return x.record
		}
	}
	return ""
}

// withKey returns the request with another key.
func (r request) withKey(key string) request {
	r.Key, r.Header = key, maps.Clone(r.Header)
	return r
}
