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

// look is the Lambda handler. What the schedule's event says is of no use.
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
	all, byRoute := emf.DeadLeases{}, map[string]emf.DeadLeases{}
	for _, route := range w.routes {
		byRoute[route] = emf.DeadLeases{} // zeros are told, too
	}
	now := w.clock()
	for rec, err := range w.leases(ctx) {
		switch {
		case err != nil && rec.ID != "":
			w.log.Error("a record in the index of leases can't be read", "record", rec.ID, "error", err)
			continue
		case err != nil && all.Count > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			w.log.Error("there was no time to find all dead leases; there may be more than the metrics say", "found", all.Count)
			maps.DeleteFunc(byRoute, func(_ string, found emf.DeadLeases) bool { return found.Count == 0 })
		case err != nil:
			return fmt.Errorf("look for dead leases, after %d: %w", all.Count, err)
		default:
			route := w.routeOf(rec.Scope)
			all = with(all, now.Sub(rec.LeaseEnd))
			byRoute[route] = with(byRoute[route], now.Sub(rec.LeaseEnd))
			if all.Count <= named {
				w.log.Warn("a lease is over and its attempt has not ended: what it did is unknown", "record", rec.ID, "route", route,
					"attempt", rec.Attempt, "started", rec.StartedAt, "lease_ended", rec.LeaseEnd, "held", rec.Expires.IsZero())
			}
		}
	}
	w.metrics.DeadLeases(all, byRoute)
	return nil
}

// with is what was found with one more, which ended so long ago.
func with(found emf.DeadLeases, ago time.Duration) emf.DeadLeases {
	return emf.DeadLeases{Count: found.Count + 1, Oldest: max(found.Oldest, ago)}
}
