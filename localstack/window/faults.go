package window

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// The names of the faults that the page can arm.
const (
	faultKill       = "kill"
	faultLock       = "lock"
	faultCompletion = "completion"
	faultResponse   = "response"
	faultLate       = "late"
)

// setFault arms a fault for the next request that it can strike, or disarms it if it is armed.
// It returns an error during a story, which arms faults itself and disarms all in the end.
func (w *Window) setFault(name string) error {
	if w.playing() {
		return errStory
	}
	if name == faultResponse {
		w.update(func(c *controls) { c.deaf = !c.deaf })
		return nil
	}
	if slices.Contains(w.faults.Armed(), name) {
		w.faults.Disarm(name)
		return nil
	}
	return w.arm(name, "")
}

// arm arms a fault for the next request with this key, or with any key if it is empty.
func (w *Window) arm(name, key string) error {
	o := rehearsal.Once{Name: name, Kind: rehearsal.Completion, Match: func(r *proxy.Request, a rehearsal.Access) bool {
		return w.ofRequest(r, a, key)
	}}
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
		w.mu.Lock()
		if x := w.exchange(c.TraceID); x != nil {
			x.seen.struck = name
		}
		w.mu.Unlock()
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
// those of functions behind queues, nor those of guarded calls inside a handler. If a key is
// given, the request has it.
func (w *Window) ofRequest(r *proxy.Request, a rehearsal.Access, key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.exchange(r.TraceID)
	return x != nil && (x.record == "" || x.record == a.Record) && (key == "" || x.request.Key == key)
}

// delay is the fault that holds a request on its way until the lease of its attempt is over
// and another attempt has finished. Further tries of the same attempt are lost.
func (w *Window) delay(c *proxy.Call) {
	record := rehearsal.AccessOf(&c.Request).Record
	w.mu.Lock()
	x := w.exchange(c.TraceID)
	r, settled := x.request, make(chan struct{})
	x.settled, x.seen.late = settled, true
	if x.stores != nil { // nil: it is of a call inside a handler that runs without a record
		x.stores.late = true
	}
	w.mu.Unlock()
	w.loseTries(c.TraceID)
	gate := proxy.HoldRequest()
	if err := w.run(func() { defer close(settled); w.overtake(gate, x, r, record) }); err != nil {
		proxy.LoseRequest(c)
		return
	}
	w.history.add(sequence.Event{From: world.ID, Request: x.label, Kind: sequence.Note,
		Text: "the network holds up the request that stores the answer, for longer than the lease. It will lose further tries of the same write"})
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
func (w *Window) overtake(gate *proxy.Gate, x *exchange, r request, record string) {
	select {
	case <-gate.Reached():
	case <-w.ctx.Done():
		return
	}
	w.update(func(c *controls) { c.busy++ })
	if _, err := w.outlast(w.ctx, r, record); err == nil {
		w.history.add(sequence.Event{From: world.ID, Request: x.label, Kind: sequence.Note, Text: "the request that was held up arrives at DynamoDB"})
	}
	_, _ = gate.Open() // what comes of it is in the diagram
	w.faults.Disarm(faultTries)
	w.sumUp(w.ctx, record)
	w.update(func(c *controls) {
		c.busy--
		if c.story == "" {
			c.look = x.seen.caption()
		}
	})
}

// outlast waits for the end of a record's lease, and repeats a request until no lease is in
// its way.
func (w *Window) outlast(ctx context.Context, r request, record string) (outcome, error) {
	if end, ok := w.leaseEnd(record); ok {
		w.update(func(c *controls) {
			c.waiting, c.until = "Waiting for the lease to end, and then repeating the request", end
		})
		err := pause(ctx, time.Until(end))
		w.update(func(c *controls) { c.waiting = "" })
		if err != nil {
			return outcome{}, err
		}
	}
	for {
		o, err := w.do(ctx, r, false)
		if err != nil || !o.has(lambdaidem.ErrInProgress) {
			return o, err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return o, err
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

// lateOutcome returns what became of the exchange of a key whose answer was held up,
// when the answer has arrived. It returns an empty outcome if none was held up.
func (w *Window) lateOutcome(ctx context.Context, key string) (outcome, error) {
	w.mu.Lock()
	i := slices.IndexFunc(w.exchanges, func(x *exchange) bool { return x.request.Key == key && x.settled != nil })
	if i < 0 {
		w.mu.Unlock()
		return outcome{}, nil
	}
	x := w.exchanges[i]
	w.mu.Unlock()
	select {
	case <-x.settled:
	case <-ctx.Done():
		return outcome{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return x.seen, nil
}
