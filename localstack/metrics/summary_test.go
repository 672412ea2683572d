package metrics_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/localstack/metrics"
)

// observed returns the totals that a collector gets if the observer of each function observes
// these events.
func observed(t *testing.T, events map[string][]lambdaidem.Event, optFns ...func(*emf.Options)) *metrics.Totals {
	t.Helper()
	var c metrics.Collector
	var log bytes.Buffer
	for function, each := range events {
		o := emf.New(append(optFns, func(o *emf.Options) { o.Service, o.Function, o.Writer = "shop", function, c.Log(&log, false) })...)
		for _, e := range each {
			o.Observe(t.Context(), e)
		}
	}
	if log.Len() > 0 {
		t.Fatalf("the log has %s", &log)
	}
	return c.Take()
}

func event(kind lambdaidem.Kind, store time.Duration) lambdaidem.Event {
	return lambdaidem.Event{Kind: kind, Template: "POST /" + string(kind), Duration: time.Second, Store: store, Attempt: 1}
}

// Each call counts once, although observers write its metrics both by function and by route.
func TestO1_SummaryTellsWhatCameOfTheCalls(t *testing.T) {
	calls := map[string][]lambdaidem.Event{
		"Refund": {event(lambdaidem.EventNew, 3*time.Millisecond)},
		"Pay": {
			event(lambdaidem.EventNew, 3*time.Millisecond), event(lambdaidem.EventNew, 3*time.Millisecond), event(lambdaidem.EventReplayed, time.Millisecond),
			event(lambdaidem.EventTakenOver, 0), event(lambdaidem.EventInProgress, time.Minute), event(lambdaidem.EventKeyMissing, 0),
		},
	}
	want := "Pay 2 new, 1 replayed, 1 in progress, 1 key missing, 1 taken over; Refund 1 new; duplicates 40 %; takeovers 1; store p50 3.0 ms"
	for name, option := range map[string]func(*emf.Options){
		"as it is":           func(*emf.Options) {},
		"another namespace":  func(o *emf.Options) { o.Namespace = "shop" },
		"without the routes": func(o *emf.Options) { o.NoRoutes = true },
		"with the records":   func(o *emf.Options) { o.Records = true },
	} {
		if got := metrics.Summary(observed(t, calls, option)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The summary includes every outcome.
func TestO1_SummaryHasEveryOutcome(t *testing.T) {
	for _, m := range emf.Metrics() {
		if m.Kind == "" {
			continue
		}
		got := metrics.Summary(observed(t, map[string][]lambdaidem.Event{"Pay": {{Kind: m.Kind}}}, func(o *emf.Options) { o.Bypassed = true }))
		if want := "Pay 1 " + strings.ReplaceAll(string(m.Kind), "_", " "); got != want {
			t.Errorf("%s: %q, want %q", m.Kind, got, want)
		}
	}
}

func TestSummary_OfWhatIsNotOurs(t *testing.T) {
	var totals metrics.Totals
	for _, d := range []metrics.Datum{
		{Namespace: "n", Name: "Orders", Unit: "Count", Dimensions: map[string]string{"service": "s", "function": "f"}},
		{Namespace: "n", Name: "New", Unit: "Bytes", Dimensions: map[string]string{"service": "s", "function": "f"}},
		{Namespace: "n", Name: "New", Unit: "Count", Dimensions: map[string]string{"service": "s"}},
		{Namespace: "n", Name: "New", Unit: "Count", Dimensions: map[string]string{"service": "s", "page": "f"}},
		{Namespace: "n", Name: "New", Unit: "Count", Dimensions: map[string]string{"a": "s", "function": "f"}},
		{Namespace: "n", Name: "New", Unit: "Count", Dimensions: map[string]string{"service": "s", "function": "f", "page": "p"}},
	} {
		d.Values = []float64{1}
		totals.Add(d)
	}
	if got := metrics.Summary(&totals); got != "" {
		t.Errorf("it says %q", got)
	}
	if got := metrics.Summary(&metrics.Totals{}); got != "" {
		t.Errorf("of nothing it says %q", got)
	}
}
