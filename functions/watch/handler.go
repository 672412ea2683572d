package main

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

// leases are those whose attempts died, in any order.
type leases = iter.Seq2[lambdaidem.Record, error]

// watch looks for leases whose attempts died.
type watch struct {
	leases  func(context.Context) leases
	ttl     func(context.Context) (enabled bool, err error) // of the table
	routes  []string
	metrics *emf.Observer
	clock   func() time.Time
	log     *slog.Logger
}

const (
	// reserve is kept of the invocation's time, to write what was found so far.
	reserve = 2 * time.Second
	// named is how many leases are logged one by one. The others are counted.
	named = 20
)

// lookAtTTL writes whether the table deletes what has expired. If it can't know, it
// writes nothing, and the alarm takes that for a bad sign.
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

// look returns the Lambda handler. What the schedule's event says is of no use.
//
// A look that fails writes no metrics: any number would be too small, and a zero would
// be a lie. The alarm takes missing ones for a bad sign. One that has no time left
// writes what it found, and no zeros: there are so many that their exact number is of
// no use.
func (w watch) look(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithDeadline(ctx, end.Add(-reserve))
		defer cancel()
		ctx = limited
	}
	w.lookAtTTL(ctx)
	all, byRoute := emf.DeadLeases{}, map[string]emf.DeadLeases{}
	for _, route := range w.routes {
		byRoute[route] = emf.DeadLeases{} // zeros are told, too
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
