package emf

import (
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/measure"
)

// Metric is one metric: its name is stable.
type Metric struct {
	Name string
	Unit Unit
	Kind lambdaidem.Kind // that it counts; empty: it counts or measures something else
}

// Unit is a unit of CloudWatch (Amazon CloudWatch API, MetricDatum).
type Unit string

// The units.
const (
	Count        Unit = "Count"
	Milliseconds Unit = "Milliseconds"
	None         Unit = "None"
)

// counts names the count of each kind.
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

// What is not the count of a kind.
var (
	duration        = Metric{Name: "Duration", Unit: Milliseconds}
	handlerDuration = Metric{Name: "HandlerDuration", Unit: Milliseconds}
	storeDuration   = Metric{Name: "StoreDuration", Unit: Milliseconds}
	attempt         = Metric{Name: "Attempt", Unit: None}
	throttled       = Metric{Name: "Throttled", Unit: Count}
	otherKind       = Metric{Name: "Other", Unit: Count} // of a version that this package does not know
)

// limits names the count of each limit that throttles.
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

// Metrics lists every metric that there may be.
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
