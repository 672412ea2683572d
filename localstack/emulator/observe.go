package emulator

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Event is something that happened to a process or to an invocation; see Options.Observe.
type Event struct {
	Kind     EventKind
	Function string    // logical ID
	PID      int       // process id
	Started  time.Time // when the process was started
	TraceID  string    // of the invocation, as in [Process]; empty for ProcessEnded
	Reason   string    // why a process ended; empty for the other kinds
}

// EventKind says what happened.
type EventKind int

// The kinds of event.
const (
	InvocationTaken    EventKind = iota // a process has taken an invocation
	InvocationTimedOut                  // an invocation has no answer at its function's Timeout
	InvocationAnswered                  // a process has answered an invocation, in time or not
	ProcessEnded                        // a process has ended; invocations that it had have failed
)

// observe calls Options.Observe for an event of the process.
func (p *process) observe(kind EventKind, traceID, reason string) {
	p.pool.options.Observe(Event{
		Kind: kind, Function: p.pool.function.LogicalID, PID: p.command.Process.Pid, Started: p.started, TraceID: traceID, Reason: reason,
	})
}

// TraceID returns the trace ID of the invocation that an HTTP request leads to, in the form
// of Process.TraceID, given the request's context. It is empty outside Options.Middleware.
func TraceID(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// traceKey is the key of a request's context for the trace ID.
type traceKey struct{}

// traced gives each request a trace ID before anything else sees the request.
func traced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), traceKey{}, newTraceID())))
	})
}

func newTraceID() string {
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", time.Now().Unix(), randomHex(12), randomHex(8))
}
