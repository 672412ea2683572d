// Package otelobserver reports the outcomes of guarded calls to OpenTelemetry. Its [Observer]
// records metrics, and adds an event to the current span.
//
//	telemetry := otelobserver.New() // uses the global meter provider
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
//		o.Observer = lambdaidem.Observers(o.Observer, telemetry) // keeps the default observer, which logs to slog
//	})
//
// The package links only OpenTelemetry's API. The program chooses the SDK, its providers and
// its exporters. On Lambda the program must flush the meter provider before an invocation
// ends, because Lambda freezes the process then. Package emf needs no flush.
//
// These are the metrics. docs/metrics.md explains them.
//
//	lambdaidem.outcomes          {outcome}   number of events, by outcome
//	lambdaidem.call.duration     s           duration of a call
//	lambdaidem.handler.duration  s           time of the call that the handler took
//	lambdaidem.store.duration    s           time of the call that the store took, without saves of steps
//	lambdaidem.attempts          {attempt}   number of the attempt that ran: 1 is the first
//	lambdaidem.store.throttles   {throttle}  number of store calls that failed because of throttling
//
// The attributes are lambdaidem.outcome and lambdaidem.route, and error.type if the store
// failed. lambdaidem.store.throttles has lambdaidem.route and lambdaidem.throttle, which is
// the limit that throttled the store.
//
// The event on the span is named lambdaidem.outcome. It has all of these attributes, and
// lambdaidem.attempt and lambdaidem.cached.
//
// A route is a route template or the name of an operation, or "(none)". It is never a path, a
// key, a caller or any other text that a client or a sender chose.
package otelobserver
