package watch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// Options are the options of [Handler]. The zero value of each field selects its default.
type Options struct {
	// Routes are the routes and operations that get metrics of their own, spelled as in the
	// metrics of their guards: "POST /payments", or the operation of Do, Handler and
	// BatchOptions. They also get a zero if they have no dead lease. Leases of other routes
	// are counted together, as "(none)". List no value that a client can choose, because
	// CloudWatch charges for each. Default: none.
	Routes []string

	// Rate is the maximum number of requests to the table per second. After an incident
	// there may be many dead leases, and other functions need the table's capacity.
	// The minimum is 0.001. Default: 250.
	Rate float64

	// Metrics writes the metrics. Default: emf.New(), whose service and function are the name
	// of the Lambda function.
	Metrics *emf.Observer

	// Log receives the record of each dead lease, up to 20 in one invocation. It also
	// receives an error for a record that can't be read, for a search that runs out of time,
	// and for a TTL that is off or unknown. Default: the result of slog.Default when Handler
	// is called.
	Log *slog.Logger
}

// leastRate is the minimum of Options.Rate: that of dynamostore.DeadLeasesOptions.Rate.
const leastRate = 0.001

// Handler returns a Lambda handler that looks for dead leases once. It ignores its event. Use it
// in place of [Main] to set options in Go:
//
//	lambda.Start(watch.Handler(store))
//
// store must have [dynamostore.Options].LeaseIndex and the other options of the functions that
// write to the table. If it has more shards (LeaseShards) than they have, it finds their leases
// too.
//
// If the query of the index fails, the handler writes no metrics of leases and returns the
// error, because every number would be too small. It stops looking 2 s before the deadline
// of its context. If it has found leases by then, it writes their number, logs that there may
// be more, and returns nil. If it has found none, it returns an error.
//
// Handler panics if store is nil or Options.Rate is less than its minimum.
func Handler(store *dynamostore.Store, optFns ...func(*Options)) func(context.Context) error {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Rate == 0 {
		o.Rate = 250
	}
	if o.Metrics == nil {
		o.Metrics = emf.New()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	switch {
	case store == nil:
		panic("watch: Handler: store is nil; pass dynamostore.New(client, table, …)")
	case o.Rate < leastRate || o.Rate != o.Rate:
		panic(fmt.Sprintf("watch: Handler: Options.Rate is %v; it must be at least %v a second, or 0", o.Rate, leastRate))
	}
	w := watch{
		leases: func(ctx context.Context) leases {
			return store.DeadLeases(ctx, func(d *dynamostore.DeadLeasesOptions) { d.Rate = o.Rate })
		},
		ttl: store.TTLEnabled, routes: o.Routes, metrics: o.Metrics, clock: time.Now, log: o.Log,
	}
	return w.look
}
