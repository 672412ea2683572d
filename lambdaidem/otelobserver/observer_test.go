package otelobserver_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/otelobserver"
)

// observed returns an observer and a function that collects its metrics. The function returns the
// values by name, unit and attributes: the sum of a counter, or the sum, number of values and
// bucket bounds of a histogram.
func observed(t testing.TB) (*otelobserver.Observer, func() map[string]string) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	o := otelobserver.New(func(o *otelobserver.Options) { o.MeterProvider = provider })
	return o, func() map[string]string {
		t.Helper()
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, s := range all.ScopeMetrics {
			if s.Scope.Name != "github.com/lambdaidem/toolkit/lambdaidem" {
				t.Errorf("the instrumentation is %q", s.Scope.Name)
			}
			for _, m := range s.Metrics {
				if m.Description == "" {
					t.Errorf("%s has no description", m.Name)
				}
				points(m, found)
			}
		}
		return found
	}
}

func points(m metricdata.Metrics, found map[string]string) {
	name := m.Name + " " + m.Unit
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			found[name+" "+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			found[name+" "+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.Sum, " of ", p.Count, " in ", p.Bounds)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			found[name+" "+p.Attributes.Encoded(encoder{})] = fmt.Sprint(p.Sum, " of ", p.Count, " in ", p.Bounds)
		}
	}
}

const inSeconds = " in [0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10]"

func wantPoints(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the metrics are\n%v, want\n%v", got, want)
	}
}

func TestO1_MetricsOfACall(t *testing.T) {
	o, collect := observed(t)
	for range 2 {
		o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Template: "POST /payments/{id}", Attempt: 2,
			Duration: 4 * time.Second, Handler: time.Second, Store: 2 * time.Second})
	}
	const of = " lambdaidem.outcome=new,lambdaidem.route=POST /payments/{id}"
	wantPoints(t, collect(), map[string]string{
		"lambdaidem.outcomes {outcome}" + of: "2",
		"lambdaidem.call.duration s" + of:    "8 of 2" + inSeconds,
		"lambdaidem.handler.duration s" + of: "2 of 2" + inSeconds,
		"lambdaidem.store.duration s" + of:   "4 of 2" + inSeconds,
		"lambdaidem.attempts {attempt}" + of: "4 of 2 in [1 2 3 5 10]",
	})
}

// If the clock was set back, no duration is recorded.
func TestO1_NoTimeIsNegative(t *testing.T) {
	o, collect := observed(t)
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventReplayed, Duration: -1, Handler: -1, Store: -1})
	wantPoints(t, collect(), map[string]string{"lambdaidem.outcomes {outcome} lambdaidem.outcome=replayed,lambdaidem.route=(none)": "1"})
}

func TestO1_MetricsOfAStoreThatFails(t *testing.T) {
	o, collect := observed(t)
	e := lambdaidem.Event{Kind: lambdaidem.EventStoreError, Reason: lambdaidem.ReasonThrottled, Throttle: lambdaidem.ThrottleAccount, Duration: time.Second}
	o.Observe(t.Context(), e)
	e.Kind = lambdaidem.EventFailedOpen // an event about the same failure
	o.Observe(t.Context(), e)
	wantPoints(t, collect(), map[string]string{
		"lambdaidem.outcomes {outcome} error.type=throttled,lambdaidem.outcome=store_error,lambdaidem.route=(none)": "1",
		"lambdaidem.store.throttles {throttle} lambdaidem.route=(none),lambdaidem.throttle=account":                 "1",
		"lambdaidem.outcomes {outcome} lambdaidem.outcome=failed_open,lambdaidem.route=(none)":                      "1",
	})
}

// Every kind of event is counted under its own name. The kinds are read from the source, so
// that no new kind can be forgotten. A kind that only a later version knows is counted as other.
func TestO1_EveryKindIsCounted(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../eventkind.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	o, collect := observed(t)
	want := map[string]string{"lambdaidem.outcomes {outcome} lambdaidem.outcome=other,lambdaidem.route=(none)": "1"}
	o.Observe(t.Context(), lambdaidem.Event{Kind: "later"})
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, named := spec.Type.(*ast.Ident); !named || name.Name != "Kind" {
			return true
		}
		kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.Kind(kind)})
		attrs := "lambdaidem.outcome=" + kind + ",lambdaidem.route=(none)"
		if kind == string(lambdaidem.EventStoreError) {
			attrs = "error.type=unknown," + attrs
		}
		want["lambdaidem.outcomes {outcome} "+attrs] = "1"
		return true
	})
	if len(want) < 10 {
		t.Fatalf("there are %d kinds", len(want))
	}
	wantPoints(t, collect(), want)
}

// Each outcome is added to the current span as an event, with attributes from fixed lists.
func TestO1_SpanEvents(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	o, _ := observed(t)
	ctx, span := tracer.Start(t.Context(), "request")
	o.Observe(ctx, lambdaidem.Event{Kind: lambdaidem.EventStoreError, Template: "POST /a", Reason: lambdaidem.ReasonThrottled, Throttle: lambdaidem.ThrottleKeyRange})
	o.Observe(ctx, lambdaidem.Event{Kind: lambdaidem.EventReplayed, Attempt: 3, Cached: true})
	span.End()
	o.Observe(ctx, lambdaidem.Event{Kind: lambdaidem.EventNew}) // the span has ended, so this event is not added
	var got []string
	for _, e := range recorder.Ended()[0].Events() {
		text := e.Name
		for _, a := range e.Attributes {
			text += fmt.Sprintf(" %s=%v", a.Key, a.Value.AsInterface())
		}
		got = append(got, text)
	}
	want := []string{
		"lambdaidem.outcome lambdaidem.outcome=store_error lambdaidem.route=POST /a error.type=throttled lambdaidem.attempt=0 lambdaidem.cached=false lambdaidem.throttle=key_range",
		"lambdaidem.outcome lambdaidem.outcome=replayed lambdaidem.route=(none) lambdaidem.attempt=3 lambdaidem.cached=true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the span has\n%v, want\n%v", got, want)
	}
}

// The event of a guarded call is added to the span in which the call was made.
func TestO1_SpanOfTheCall(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	o, _ := observed(t)
	g := lambdaidem.New(memstore.New(), func(opts *lambdaidem.Options) { opts.Observer = o })
	ctx, span := tracer.Start(t.Context(), "call")
	call := lambdaidem.Call{Operation: "charge", Key: "k"}
	if _, err := lambdaidem.Do(ctx, g, call, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	span.End()
	if n := len(recorder.Ended()[0].Events()); n != 1 {
		t.Errorf("the span has %d events", n)
	}
}

const mark = "SeCReT"

// No other field of an event appears in metrics or on the span.
func TestO1_NothingElseOfAnEventIsTold(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	o, collect := observed(t)
	e := lambdaidem.Event{Err: errors.New(mark)}
	fields := reflect.ValueOf(&e).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Kind() == reflect.String && fields.Type().Field(i).Name != "Template" {
			f.SetString(mark)
		}
	}
	ctx, span := tracer.Start(t.Context(), "request")
	o.Observe(ctx, e)
	for _, reason := range []lambdaidem.Reason{mark, lambdaidem.ReasonThrottled} {
		e.Kind, e.Reason = lambdaidem.EventStoreError, reason
		o.Observe(ctx, e)
	}
	span.End()
	events := recorder.Ended()[0].Events()
	if text := fmt.Sprintf("%v %+v", collect(), events); strings.Contains(text, mark) || len(events) != 3 {
		t.Errorf("it told %s", text)
	}
}

// The metrics of a guard's events contain neither keys nor paths nor callers.
func TestO1_NoSecretIsTold(t *testing.T) {
	o, collect := observed(t)
	g := lambdaidem.New(memstore.New(), func(opts *lambdaidem.Options) {
		opts.Observer, opts.ShowKeys = o, true
		opts.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return mark, nil }
	})
	h := g.APIGatewayV2(func(context.Context, v2Request) (v2Response, error) {
		return v2Response{StatusCode: 201, Body: mark}, nil
	})
	in := idemtest.Request{Path: "/" + mark, Key: mark, Body: mark}.APIGatewayV2()
	for _, route := range []string{"$default", "POST /{id}"} {
		in.RouteKey = route
		for range 2 {
			if _, err := h(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := collect()
	if text := fmt.Sprint(got); strings.Contains(text, mark) {
		t.Errorf("it told %s", text)
	}
	for _, outcome := range []string{"new", "replayed"} {
		for _, route := range []string{"(none)", "POST /{id}"} {
			if got["lambdaidem.outcomes {outcome} lambdaidem.outcome="+outcome+",lambdaidem.route="+route] != "1" {
				t.Errorf("%s on %s is not counted: %v", outcome, route, got)
			}
		}
	}
}

func TestObserver_Concurrently(t *testing.T) {
	o, collect := observed(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventBypassed})
			}
		})
	}
	wg.Wait()
	wantPoints(t, collect(), map[string]string{"lambdaidem.outcomes {outcome} lambdaidem.outcome=bypassed,lambdaidem.route=(none)": "800"})
}

// The observer uses the global meter provider, even one that is set later.
func TestOptions_GlobalProvider(t *testing.T) {
	was := otel.GetMeterProvider()
	defer otel.SetMeterProvider(was)
	o := otelobserver.New()
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew})
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil || len(all.ScopeMetrics) != 1 {
		t.Errorf("it has %+v, %v", all, err)
	}
}

// broken is a meter provider that fails to create any instrument.
type broken struct{ noop.MeterProvider }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("no instruments today")

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

func (brokenMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errBroken
}

func (brokenMeter) Int64Histogram(string, ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	return nil, errBroken
}

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errBroken
}

// The errors of a meter provider are passed to otel.Handle, and Observe still works.
func TestNew_AProviderThatFails(t *testing.T) {
	var told []error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = append(told, err) }))
	o := otelobserver.New(func(o *otelobserver.Options) { o.MeterProvider = broken{} })
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventNew, Duration: 1, Handler: 1, Store: 1, Attempt: 1})
	o.Observe(t.Context(), lambdaidem.Event{Kind: lambdaidem.EventStoreError, Reason: lambdaidem.ReasonThrottled})
	if len(told) != 6 || !errors.Is(told[0], errBroken) {
		t.Errorf("it told %v", told)
	}
}

func BenchmarkObserve(b *testing.B) {
	o, _ := observed(b)
	e := lambdaidem.Event{Kind: lambdaidem.EventNew, Template: "POST /a", Attempt: 1, Duration: time.Second, Handler: time.Second, Store: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		o.Observe(b.Context(), e)
	}
}
