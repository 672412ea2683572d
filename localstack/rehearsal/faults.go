package rehearsal

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// Faults decides what becomes of the functions' calls to DynamoDB. In the zero value, every
// call passes. It is safe for concurrent use.
type Faults struct {
	mu     sync.Mutex
	table  string // a key of tableStates; empty: Works
	armed  []Once
	change func() // see OnChange
}

// Once is a fault for one request to the table of records.
type Once struct {
	// Name identifies the fault for [Faults.Disarm] and [Faults.Armed]. A fault replaces an
	// armed one of the same name.
	Name string
	// Kind is the kind of the requests that the fault is for. Lock includes Takeover.
	Kind AccessKind
	// After is the number of such requests that pass before the fault strikes.
	After int
	// Match selects the requests further. Nil selects all.
	Match func(*proxy.Request, Access) bool
	// Fault is what becomes of the request.
	Fault proxy.Fault
}

func (o *Once) matches(r *proxy.Request, a Access) bool {
	return (a.Kind == o.Kind || o.Kind == Lock && a.Kind == Takeover) && (o.Match == nil || o.Match(r, a))
}

// Works is the state of a table that nothing is wrong with.
const Works = "works"

// tableStates are the states that the table can be put into, and what becomes of the
// functions' calls in each.
var tableStates = map[string]proxy.Fault{
	Works:          nil,
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

// SetTable puts the table into a state: works, throttled, unreachable or lost-replies. An
// unknown state is an error, which lists the states.
func (f *Faults) SetTable(state string) error {
	if _, known := tableStates[state]; !known {
		return fmt.Errorf("there is no state %q; there are %q", state, slices.Sorted(maps.Keys(tableStates)))
	}
	f.mu.Lock()
	defer f.changed()
	defer f.mu.Unlock()
	f.table = state
	return nil
}

// Arm sets a fault for the next request that it matches.
func (f *Faults) Arm(o Once) {
	f.mu.Lock()
	defer f.changed()
	defer f.mu.Unlock()
	f.disarm(o.Name)
	f.armed = append(f.armed, o)
}

// Disarm takes back the fault of this name. It does nothing if there is none.
func (f *Faults) Disarm(name string) {
	f.mu.Lock()
	defer f.changed()
	defer f.mu.Unlock()
	f.disarm(name)
}

func (f *Faults) disarm(name string) {
	f.armed = slices.DeleteFunc(f.armed, func(o Once) bool { return o.Name == name })
}

// Armed returns the names of the armed faults, in the order in which they were armed.
func (f *Faults) Armed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []string{}
	for _, o := range f.armed {
		names = append(names, o.Name)
	}
	return names
}

// OnChange has a function called whenever a fault is armed, disarmed or used up, or the
// table's state changes. It must be called before calls arrive.
func (f *Faults) OnChange(change func()) { f.change = change }

func (f *Faults) changed() {
	if f.change != nil {
		f.change()
	}
}

// Fault returns what becomes of a request; nil stands for [proxy.Pass].
func (f *Faults) Fault(r *proxy.Request) proxy.Fault {
	f.mu.Lock()
	if len(f.armed) > 0 {
		access := AccessOf(r)
		for i := range f.armed {
			o := &f.armed[i]
			if !o.matches(r, access) {
				continue
			}
			if o.After > 0 {
				o.After--
				break
			}
			fault := o.Fault
			f.armed = slices.Delete(f.armed, i, i+1)
			f.mu.Unlock()
			f.changed()
			return fault
		}
	}
	defer f.mu.Unlock()
	return tableStates[f.table]
}

// Kill returns a fault that kills the function's process that sent the request, and loses the
// request. The process is found by its trace ID among the given functions, by logical ID.
func Kill(e *emulator.Emulator, functions ...string) proxy.Fault {
	return func(c *proxy.Call) {
		if c.Trace != nil && c.Trace.Killed != nil { // first, because the end of the process may be noticed at once
			c.Trace.Killed()
			c.Trace = nil
		}
		for _, function := range functions {
			if p, ok := process(e, function, c.TraceID); ok {
				_ = p.Signal(os.Kill) // an error says that the process has ended already
			}
		}
		proxy.LoseRequest(c)
	}
}

// Sent returns a Match for [Once] that selects the requests of one function, by logical ID.
func Sent(e *emulator.Emulator, function string) func(*proxy.Request, Access) bool {
	return func(r *proxy.Request, _ Access) bool {
		_, ok := process(e, function, r.TraceID)
		return ok
	}
}

// process returns the function's process that has the invocation with this trace ID.
func process(e *emulator.Emulator, function, traceID string) (emulator.Process, bool) {
	for _, p := range e.Processes(function) {
		if p.TraceID == traceID {
			return p, true
		}
	}
	return emulator.Process{}, false
}
