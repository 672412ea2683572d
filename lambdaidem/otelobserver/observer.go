package otelobserver

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/measure"
)

// scope is the name of the meter, OpenTelemetry's instrumentation scope.
const scope = "github.com/lambdaidem/toolkit/lambdaidem"

// The keys of the attributes of metrics and span events.
const (
	outcomeKey  = attribute.Key("lambdaidem.outcome")
	routeKey    = attribute.Key("lambdaidem.route")
	throttleKey = attribute.Key("lambdaidem.throttle")
	attemptKey  = attribute.Key("lambdaidem.attempt")
	cachedKey   = attribute.Key("lambdaidem.cached")
	errorKey    = attribute.Key("error.type") // defined by OpenTelemetry's semantic conventions
)

// spanEvent is the name of the event that is added to the current span.
const spanEvent = "lambdaidem.outcome"

// Options are the options of [New]. A field that is nil gets its default.
type Options struct {
	// MeterProvider creates the instruments. Default: the global meter provider, which
	// may be set before or after the call of New.
	MeterProvider metric.MeterProvider
}

// Observer is a [lambdaidem.Observer] that records metrics and adds span events. Create one
// with [New]. It is safe for concurrent use.
type Observer struct {
	outcomes, throttles  metric.Int64Counter
	call, handler, store metric.Float64Histogram
	attempts             metric.Int64Histogram
}

// New returns an Observer. If the provider can't create an instrument, New passes the error to
// otel.Handle, and the Observer works without that instrument.
func New(optFns ...func(*Options)) *Observer {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	m := o.MeterProvider.Meter(scope)
	counter := func(name, unit, what string) metric.Int64Counter {
		i, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		return made[metric.Int64Counter](i, err, noop.Int64Counter{})
	}
	seconds := func(name, what string) metric.Float64Histogram {
		i, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
			// The bucket boundaries of http.server.request.duration in the semantic conventions. The
			// SDK's default boundaries suit milliseconds, but these durations are in seconds.
			metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
		return made[metric.Float64Histogram](i, err, noop.Float64Histogram{})
	}
	attempts, err := m.Int64Histogram("lambdaidem.attempts", metric.WithUnit("{attempt}"), metric.WithDescription("Number of the attempt that ran."),
		metric.WithExplicitBucketBoundaries(1, 2, 3, 5, 10))
	return &Observer{
		outcomes:  counter("lambdaidem.outcomes", "{outcome}", "Outcomes of guarded calls."),
		throttles: counter("lambdaidem.store.throttles", "{throttle}", "Calls of the store that were throttled for good."),
		call:      seconds("lambdaidem.call.duration", "Duration of guarded calls."),
		handler:   seconds("lambdaidem.handler.duration", "Duration of guarded handlers."),
		store:     seconds("lambdaidem.store.duration", "Time that guarded calls spent in the store."),
		attempts:  made[metric.Int64Histogram](attempts, err, noop.Int64Histogram{}),
	}
}

// made returns the given instrument if err, the error of creating it, is nil. Otherwise made passes
// err to otel.Handle and returns the parameter substitute, an instrument that does nothing.
func made[T any](instrument T, err error, substitute T) T {
	if err != nil {
		otel.Handle(err)
		return substitute
	}
	return instrument
}

// Observe records the metrics of an event. If a span is recording in ctx, it also adds an
// event to that span.
func (o *Observer) Observe(ctx context.Context, e lambdaidem.Event) {
	s := measure.Of(e)
	o.record(ctx, s)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		attrs := append(attributes(s), attemptKey.Int(e.Attempt), cachedKey.Bool(e.Cached))
		if s.Throttle != "" {
			attrs = append(attrs, throttleKey.String(s.Throttle))
		}
		span.AddEvent(spanEvent, trace.WithAttributes(attrs...))
	}
}

// record records the metrics of an event.
func (o *Observer) record(ctx context.Context, s measure.Sample) {
	with := metric.WithAttributeSet(attribute.NewSet(attributes(s)...))
	o.outcomes.Add(ctx, 1, with)
	if s.Call > 0 {
		o.call.Record(ctx, s.Call.Seconds(), with)
	}
	if s.Handler > 0 {
		o.handler.Record(ctx, s.Handler.Seconds(), with)
	}
	if s.Store > 0 {
		o.store.Record(ctx, s.Store.Seconds(), with)
	}
	if s.Attempt > 0 {
		o.attempts.Record(ctx, int64(s.Attempt), with)
	}
	if s.Throttle != "" {
		o.throttles.Add(ctx, 1, metric.WithAttributes(routeKey.String(s.Route), throttleKey.String(s.Throttle)))
	}
}

// attributes returns the attributes of every metric except the counter of throttles.
func attributes(s measure.Sample) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 6)
	attrs = append(attrs, outcomeKey.String(s.Outcome), routeKey.String(s.Route))
	if s.Reason != "" {
		attrs = append(attrs, errorKey.String(s.Reason))
	}
	return attrs
}
