package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// leases are the records whose attempts died, in any order.
type leases = iter.Seq2[lambdaidem.Record, error]

// watch counts the leases whose attempts died.
type watch struct {
	leases  func(context.Context) leases                    // queries the index of leases
	ttl     func(context.Context) (enabled bool, err error) // reports whether the table's TTL is enabled
	routes  []string                                        // routes and operations with metrics of their own
	metrics *emf.Observer
	clock   func() time.Time
	log     *slog.Logger
}

const (
	// reserve is the part of the invocation's time that is reserved for writing the
	// metrics.
	reserve = 2 * time.Second
	// named is the maximum number of leases that are logged. All of them are counted.
	named = 20
)

// lookAtTTL writes a metric of whether the table deletes expired items. If DynamoDB does not
// say, lookAtTTL writes no metric, and the alarm treats the missing metric as a failure.
func (w watch) lookAtTTL(ctx context.Context) {
	enabled, err := w.ttl(ctx)
	if err != nil {
		w.log.Error("it is not known whether the table deletes expired records", "error", err)
		return
	}
	w.metrics.TTL(enabled)
	if !enabled {
		w.log.Error("the table's TTL is off: expired records and answers are never deleted")
	}
}

// look is the Lambda handler.
//
// If the query fails, look writes no metrics of leases, because every number would be too
// small. The alarm treats missing metrics as a failure. If the time runs out, look writes the
// numbers so far, and no zero for a route without leases. There are so many leases then that
// the exact number does not matter.
func (w watch) look(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithDeadline(ctx, end.Add(-reserve))
		defer cancel()
		ctx = limited
	}
	w.lookAtTTL(ctx)
	all, byRoute := emf.DeadLeases{}, map[string]emf.DeadLeases{}
	for _, route := range w.routes {
		byRoute[route] = emf.DeadLeases{} // write a zero for a route without dead leases
	}
	now, logged := w.clock(), 0
	for rec, err := range w.leases(ctx) {
		switch {
		case err != nil && rec.ID != "":
			w.log.Error("a record in the index of leases can't be read", "record", rec.ID, "error", err)
			continue
		case err != nil && !all.None() && errors.Is(ctx.Err(), context.DeadlineExceeded):
			w.log.Error("there was no time to find all dead leases; there may be more than the metrics say", "found", all.Count+all.Held)
			maps.DeleteFunc(byRoute, func(_ string, found emf.DeadLeases) bool { return found.None() })
		case err != nil:
			return fmt.Errorf("look for dead leases, after %d: %w", all.Count+all.Held, err)
		default:
			route := w.routeOf(rec.Scope)
			ago, held, ofRoute := now.Sub(rec.LeaseEnd), rec.Held(), byRoute[route]
			all.Add(ago, held)
			ofRoute.Add(ago, held)
			byRoute[route] = ofRoute
			if logged++; logged <= named {
				w.log.Warn("a lease is over and its attempt has not ended: what it did is unknown", "record", rec.ID, "route", route,
					"attempt", rec.Attempt, "started", rec.StartedAt, "lease_ended", rec.LeaseEnd, "held", held, "invocation", rec.Invocation)
			}
		}
	}
	w.metrics.DeadLeases(all, byRoute)
	return nil
}
