package emf

import (
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/measure"
)

// Metric describes one metric. Names of metrics don't change between versions.
type Metric struct {
	Name string
	Unit Unit
	Kind lambdaidem.Kind // the kind of event that the metric counts; empty for all other metrics
}

// Unit is a unit of a CloudWatch metric (Amazon CloudWatch API Reference, MetricDatum).
type Unit string

// The units.
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	None         Unit = "None"
)

// counts lists the metrics that each count the events of a single kind.
var counts = []Metric{
	{"New", Count, lambdaidem.EventNew},
	{"Replayed", Count, lambdaidem.EventReplayed},
	{"InProgress", Count, lambdaidem.EventInProgress},
	{"Abandoned", Count, lambdaidem.EventAbandoned},
	{"Mismatch", Count, lambdaidem.EventMismatch},
	{"KeyMissing", Count, lambdaidem.EventKeyMissing},
	{"KeyInvalid", Count, lambdaidem.EventKeyInvalid},
	{"Bypassed", Count, lambdaidem.EventBypassed},
	{"Released", Count, lambdaidem.EventReleased},
	{"Uncertain", Count, lambdaidem.EventUncertain},
	{"LeaseLost", Count, lambdaidem.EventLeaseLost},
	{"TakenOver", Count, lambdaidem.EventTakenOver},
	{"FailedOpen", Count, lambdaidem.EventFailedOpen},
	{"StoreError", Count, lambdaidem.EventStoreError},
	{"AnswerLost", Count, lambdaidem.EventAnswerLost},
	{"OutOfTime", Count, lambdaidem.EventOutOfTime},
	{"Unreadable", Count, lambdaidem.EventUnreadable},
	{"NoPrincipal", Count, lambdaidem.EventNoPrincipal},
	{"NeverStarted", Count, lambdaidem.EventNeverStarted},
	{"SwitchedOff", Count, lambdaidem.EventSwitchedOff},
}

// Metrics with details of an event, such as how long its call took. The metric otherKind
// counts the events of unknown kinds. The metrics of dead leases are in statedocument.go.
var (
	duration        = Metric{Name: "Duration", Unit: Milliseconds}
	handlerDuration = Metric{Name: "HandlerDuration", Unit: Milliseconds}
	storeDuration   = Metric{Name: "StoreDuration", Unit: Milliseconds}
	attempt         = Metric{Name: "Attempt", Unit: None}
	throttled       = Metric{Name: "Throttled", Unit: Count}
	otherKind       = Metric{Name: "Other", Unit: Count} // events of kinds that this package does not know, from a later version of lambdaidem
)

// limits lists the metrics of throttled store calls, one for each limit of DynamoDB that can
// throttle a call. A metric counts the calls whose Sample.Throttle equals its field throttle. The
// last metric counts all other throttled calls.
var limits = []struct {
	Metric
	throttle string
}{
	{Metric{Name: "ThrottledKeyRange", Unit: Count}, string(lambdaidem.ThrottleKeyRange)},
	{Metric{Name: "ThrottledAccount", Unit: Count}, string(lambdaidem.ThrottleAccount)},
	{Metric{Name: "ThrottledOnDemandMaximum", Unit: Count}, string(lambdaidem.ThrottleMaximum)},
	{Metric{Name: "ThrottledProvisioned", Unit: Count}, string(lambdaidem.ThrottleProvisioned)},
	{Metric{Name: "ThrottledOther", Unit: Count}, measure.Other},
	{Metric{Name: "ThrottledUnknown", Unit: Count}, measure.Unknown},
}

// Metrics returns every metric that an [Observer] may write.
func Metrics() []Metric {
	all := append([]Metric{}, counts...)
	all = append(all, otherKind, duration, handlerDuration, storeDuration, attempt, throttled)
	for _, l := range limits {
		all = append(all, l.Metric)
	}
	return append(all, deadLeases, recentDeadLeases, oldestDeadLease, heldRecords, oldestHeldRecord, ttlDisabled)
}

func countOf(kind lambdaidem.Kind) Metric {
	for _, m := range counts {
		if m.Kind == kind {
			return m
		}
	}
	return otherKind
}

func limitOf(throttle string) Metric {
	last := len(limits) - 1
	for _, l := range limits[:last] {
		if l.throttle == throttle {
			return l.Metric
		}
	}
	return limits[last].Metric
}
