package template_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/localstack/metrics"
)

// This file has helpers that return the metrics that the functions' observer writes. Tests
// compare them with the metrics that template.yaml reads.

// counted identifies a metric in an alarm or a dashboard.
type counted struct {
	namespace, name string
	dimensions      string // names of the dimensions, sorted and separated by commas
}

func newCounted(namespace, name string, dimensions ...string) counted {
	slices.Sort(dimensions)
	return counted{namespace, name, strings.Join(dimensions, ",")}
}

// everyEvent returns events of every kind with all fields set, one for each throttling limit, and
// an event of an unknown kind.
func everyEvent() []lambdaidem.Event {
	var all []lambdaidem.Event
	for _, m := range emf.Metrics() {
		if m.Kind == "" {
			continue
		}
		for _, limit := range []lambdaidem.Throttle{lambdaidem.ThrottleKeyRange, lambdaidem.ThrottleAccount, lambdaidem.ThrottleMaximum, lambdaidem.ThrottleProvisioned, "", "later"} {
			all = append(all, lambdaidem.Event{
				Kind: m.Kind, RecordID: "lambdaidem#id", Scope: "scope", Route: "POST /a", Template: "POST /a", Caller: "caller", Key: "key",
				Attempt: 1, Duration: time.Second, Handler: time.Second, Store: time.Second, Cached: true,
				Reason: lambdaidem.ReasonThrottled, Throttle: limit, Err: lambdaidem.ErrInProgress,
			})
		}
	}
	return append(all, lambdaidem.Event{Kind: "later"})
}

// documents returns the metrics that the observer writes for every event, parsed as CloudWatch
// parses them.
func documents(t *testing.T) []metrics.Document {
	t.Helper()
	var written bytes.Buffer
	o := emf.New(func(o *emf.Options) { o.Records, o.Bypassed, o.Writer = true, true, &written })
	for _, e := range everyEvent() {
		o.Observe(t.Context(), e)
	}
	o.DeadLeases(emf.DeadLeases{}, map[string]emf.DeadLeases{"POST /a": {}})
	o.TTL(true)
	var all []metrics.Document
	for line := range bytes.Lines(written.Bytes()) {
		doc, err := metrics.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, doc)
	}
	return all
}

// everythingCounted returns all metrics that the functions can write.
func everythingCounted(t *testing.T) map[counted]bool {
	t.Helper()
	all, names := map[counted]bool{}, map[string]bool{}
	for _, doc := range documents(t) {
		for _, d := range doc.Data {
			all[newCounted(d.Namespace, d.Name, slices.Collect(maps.Keys(d.Dimensions))...)] = true
			names[d.Name] = true
		}
	}
	if want := len(emf.Metrics()); len(names) != want {
		t.Fatalf("%d metrics were written, of %d that there are", len(names), want)
	}
	return all
}

// unitOf returns the unit of a metric.
func unitOf(name string) emf.Unit {
	i := slices.IndexFunc(emf.Metrics(), func(m emf.Metric) bool { return m.Name == name })
	return emf.Metrics()[i].Unit
}
