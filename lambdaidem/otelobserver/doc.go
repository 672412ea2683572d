// Package otelobserver tells OpenTelemetry what a guard does: an
// [lambdaidem.Observer] that makes metrics, and an event on the span that is current.
//
//	telemetry := otelobserver.New() // of the global meter provider
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
//		o.Observer = lambdaidem.Observers(o.Observer, telemetry) // warnings go on to slog
//	})
//
// It links OpenTelemetry's API and no SDK: which provider there is, and where it
// sends what, is the program's to say. On Lambda the program's wrapper must flush the
// provider before an invocation ends, since the process is frozen then; package emf
// needs none of that.
//
// The metrics, of which docs/metrics.md says more:
//
//	lambdaidem.outcomes          {outcome}   how often each outcome was
//	lambdaidem.call.duration     s           the whole call
//	lambdaidem.handler.duration  s           of it, in the handler
//	lambdaidem.store.duration    s           of it, in the store, but for the handler's steps
//	lambdaidem.attempts          {attempt}   the number of the attempt that ran
//	lambdaidem.store.throttles   {throttle}  how often the store was throttled
//
// Their attributes are lambdaidem.outcome and lambdaidem.route; error.type, of a store
// that failed; and lambdaidem.throttle, the limit that throttled it. The event is
// lambdaidem.outcome with the same, and with lambdaidem.attempt and lambdaidem.cached.
// A route is a template or an operation, or "(none)": never a path, a key, a caller or
// anything else that a client or a sender chose.
package otelobserver
