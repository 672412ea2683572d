package lambdaidem

import (
	"context"
	"slices"
	"time"
)

// Event describes one outcome of one guarded call. A call may send several events, such as
// EventTakenOver and then EventNew.
//
// Route is for people. It may contain a path, which a client can choose freely.
//
// Template is for metrics, because it has a limited number of values. It is empty for an HTTP
// request without a route template. It is also empty for an EventBridge event without
// BatchOptions.Operation, because the sender chooses the source and the detail type.
type Event struct {
	Kind       Kind
	RecordID   string        // id of the record, as Guard.RecordID returns it; empty if the call ran unguarded, or was refused before its record was looked up
	Scope      string        // namespace, method, route, caller and tenant in one text; see ParseScope
	Route      string        // method, host and route template or path; or the operation
	Template   string        // method and route template, or the operation; a label for metrics, see above
	Caller     string        // the principal, and the tenant if there is one
	Key        string        // a short hash of the key, or the key itself with Options.ShowKeys; empty if there is no key
	Attempt    int           // attempt number; 0 if the call has none
	Duration   time.Duration // time since the call began
	Handler    time.Duration // time spent in the handler; 0 if it did not run
	Store      time.Duration // time spent in requests to the store, except those for steps, which are part of Handler
	Messages   int           // in the EventOutOfTime of a batch, the number of messages that did not begin for lack of time; otherwise 0
	Cached     bool          // the record came from Options.Cache, without a request to the store
	Invocation string        // Lambda's request id; empty outside Lambda, and if RecordID is empty
	TokenHash  string        // TokenHash of the attempt's fencing token, in an EventNeverStarted; otherwise empty
	Reason     Reason        // why a store request failed; empty if none did
	Throttle   Throttle      // the capacity limit that a throttled store request exceeded, if it is known
	Err        error         // the error that caused the outcome; nil if there is none
}

// Observer receives an [Event] for each outcome. The guard calls Observe on the goroutine
// of the call and waits for it, so Observe should be fast. It must be safe for concurrent
// use, and must not panic.
type Observer interface {
	Observe(context.Context, Event)
}

// ObserverFunc is an adapter that lets a function be used as an [Observer].
type ObserverFunc func(context.Context, Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Discard is the observer that ignores every event.
var Discard Observer = discard{}

type discard struct{}

func (discard) Observe(context.Context, Event) {}

// Observers returns an observer that passes each event to several observers, in their
// order. It ignores nil observers. In an option function, Observers adds an observer to
// the one that the guard has, such as the default:
//
//	o.Observer = lambdaidem.Observers(o.Observer, metrics)
func Observers(several ...Observer) Observer {
	all := slices.DeleteFunc(slices.Clone(several), func(o Observer) bool { return o == nil || o == Discard })
	switch len(all) {
	case 0:
		return Discard
	case 1:
		return all[0]
	}
	return observers(all)
}

type observers []Observer

func (all observers) Observe(ctx context.Context, e Event) {
	for _, o := range all {
		o.Observe(ctx, e)
	}
}
