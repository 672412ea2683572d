package emf_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The metrics are written in addition to the default observer's warnings, which still go to
// log/slog. On Lambda, nothing else is needed: CloudWatch extracts the metrics from the lines on
// standard output.
func Example() {
	metrics := emf.New(func(o *emf.Options) { o.Service = "payments" })
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.Observers(o.Observer, metrics)
	})
	call := lambdaidem.Call{Operation: "charge", Key: "order-1"}
	_, _ = lambdaidem.Do(context.Background(), guard, call, func(context.Context) (string, error) { return "ch_1", nil })
}

// Each event becomes one line of JSON.
func ExampleObserver_Observe() {
	metrics := emf.New(func(o *emf.Options) {
		o.Service, o.Function = "payments", "payments-api"
		o.Clock = func() time.Time { return time.UnixMilli(1767319445678) }
	})
	metrics.Observe(context.Background(), lambdaidem.Event{Kind: lambdaidem.EventReplayed, Template: "POST /payments", Duration: 4200 * time.Microsecond})
	// Output:
	// {"_aws":{"Timestamp":1767319445678,"CloudWatchMetrics":[{"Namespace":"Lambdaidem","Dimensions":[["service","function"],["service","function","route"]],"Metrics":[{"Name":"Replayed","Unit":"Count"},{"Name":"Duration","Unit":"Milliseconds"}]}]},"service":"payments","function":"payments-api","route":"POST /payments","Replayed":1,"Duration":4.2}
}

// Metrics lists the metrics for a program that creates alarms or a dashboard.
func ExampleMetrics() {
	for _, m := range emf.Metrics()[:3] {
		fmt.Println(m.Name, m.Unit)
	}
	// Output:
	// New Count
	// Replayed Count
	// InProgress Count
}

// The program reports the dead leases that it found in the store, for all routes together and for
// each route.
func ExampleObserver_DeadLeases() {
	metrics := emf.New(func(o *emf.Options) {
		o.Service, o.Function = "payments", "watch"
		o.Clock = func() time.Time { return time.UnixMilli(1767319445678) }
	})
	var found emf.DeadLeases
	found.Add(90*time.Second, false)
	found.Add(time.Second, true)
	metrics.DeadLeases(found, map[string]emf.DeadLeases{"POST /payments": found})
	// Output:
	// {"_aws":{"Timestamp":1767319445678,"CloudWatchMetrics":[{"Namespace":"Lambdaidem","Dimensions":[["service","function"]],"Metrics":[{"Name":"DeadLeases","Unit":"Count"},{"Name":"RecentDeadLeases","Unit":"Count"},{"Name":"OldestDeadLease","Unit":"Milliseconds"},{"Name":"HeldRecords","Unit":"Count"},{"Name":"OldestHeldRecord","Unit":"Milliseconds"}]}]},"service":"payments","function":"watch","DeadLeases":1,"RecentDeadLeases":1,"OldestDeadLease":90000,"HeldRecords":1,"OldestHeldRecord":1000}
	// {"_aws":{"Timestamp":1767319445678,"CloudWatchMetrics":[{"Namespace":"Lambdaidem","Dimensions":[["service","function","route"]],"Metrics":[{"Name":"DeadLeases","Unit":"Count"},{"Name":"RecentDeadLeases","Unit":"Count"},{"Name":"OldestDeadLease","Unit":"Milliseconds"},{"Name":"HeldRecords","Unit":"Count"},{"Name":"OldestHeldRecord","Unit":"Milliseconds"}]}]},"service":"payments","function":"watch","route":"POST /payments","DeadLeases":1,"RecentDeadLeases":1,"OldestDeadLease":90000,"HeldRecords":1,"OldestHeldRecord":1000}
}
