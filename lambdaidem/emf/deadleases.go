package emf

import (
	"maps"
	"slices"
	"time"
)

// recent is the maximum age of a dead lease that DeadLeases.Recent counts. The age is the time
// since the lease ended.
const recent = time.Hour

// DeadLeases counts leases that have ended although their attempts have neither completed nor
// released their records. Such attempts have probably died. If the record waits for an operator,
// DeadLeases counts a held record. Otherwise the next retry may take over the record, and
// DeadLeases counts a dead lease. The zero value of DeadLeases is empty and ready for
// [DeadLeases.Add].
type DeadLeases struct {
	Count      int           // number of dead leases, not including held records
	Recent     int           // number of dead leases in Count that ended within the last hour
	Oldest     time.Duration // time since the end of the oldest dead lease; 0 if there is none
	Held       int           // number of held records
	OldestHeld time.Duration // time since the end of the oldest lease of a held record; 0 if there is none
}

// Add counts one more lease. ago is the time since the lease ended. isHeld reports whether the
// record of the lease waits for an operator.
func (d *DeadLeases) Add(ago time.Duration, isHeld bool) {
	if isHeld {
		d.Held++
		d.OldestHeld = max(d.OldestHeld, ago)
		return
	}
	d.Count++
	d.Oldest = max(d.Oldest, ago)
	if ago < recent {
		d.Recent++
	}
}

// None reports whether there are neither dead leases nor held records.
func (d *DeadLeases) None() bool { return d.Count == 0 && d.Held == 0 }

// DeadLeases writes the counts of a store's dead leases and held records. Call it in a program that
// looks for them regularly, such as the function of package watch. total has the counts of all
// routes together. byRoute has the counts of each route, by its [lambdaidem.Event].Template; a
// blank key is written as "(none)". There must be few routes, because CloudWatch charges for each.
//
// DeadLeases writes total with the dimensions [service, function]. Unless Options.NoRoutes is set,
// it writes byRoute with the dimensions [service, function, route]. The service and function are
// those of the program that calls DeadLeases. DeadLeases writes zeros too, so that an alarm can
// distinguish a search that found nothing from a search that did not run.
//
// The values are the state at one moment. An alarm should use their maximum, not their sum.
func (o *Observer) DeadLeases(total DeadLeases, byRoute map[string]DeadLeases) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock()
	o.write(now, nil, total.values())
	if !o.routes {
		return
	}
	for _, route := range slices.Sorted(maps.Keys(byRoute)) {
		found := byRoute[route]
		o.write(now, &route, found.values())
	}
}

func (d *DeadLeases) values() []measured {
	return []measured{
		{deadLeases, int64(d.Count)}, {recentDeadLeases, int64(d.Recent)}, {oldestDeadLease, max(0, d.Oldest.Milliseconds())},
		{heldRecords, int64(d.Held)}, {oldestHeldRecord, max(0, d.OldestHeld.Milliseconds())},
	}
}
