package emf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// What a look at leases that are over measures: see [Observer.DeadLeases].
var (
	deadLeases       = Metric{Name: "DeadLeases", Unit: Count}
	recentDeadLeases = Metric{Name: "RecentDeadLeases", Unit: Count}
	oldestDeadLease  = Metric{Name: "OldestDeadLease", Unit: Milliseconds}
	heldRecords      = Metric{Name: "HeldRecords", Unit: Count}
	oldestHeldRecord = Metric{Name: "OldestHeldRecord", Unit: Milliseconds}
	ttlDisabled      = Metric{Name: "TTLDisabled", Unit: Count}
)

// recent is how long a dead lease counts as a recent one.
const recent = time.Hour

// DeadLeases is what a look found: the leases that are over while their attempts
// neither completed nor gave up. Dead leases and held records are counted apart,
// because the next retry takes over a dead lease, while a held record waits for an
// operator. The zero DeadLeases has found none.
type DeadLeases struct {
	Count      int           // dead leases
	Recent     int           // of them, those that ended within the last hour
	Oldest     time.Duration // since the end of the dead lease that ended first; 0 if there is none
	Held       int           // held records
	OldestHeld time.Duration // since the end of the held record's lease that ended first; 0 if there is none
}

// Add counts one more lease that ended so long ago. held reports whether its
// record is held for an operator.
func (d *DeadLeases) Add(ago time.Duration, held bool) {
	if held {
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

// None reports whether nothing was found.
func (d *DeadLeases) None() bool { return d.Count == 0 && d.Held == 0 }

// TTL writes whether the table deletes what has expired, as the metric
// TTLDisabled, 0 or 1, by [service, function]. A table whose TTL is off grows for
// ever and keeps what should have been erased.
func (o *Observer) TTL(enabled bool) {
	disabled := int64(1)
	if enabled {
		disabled = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(o.clock(), nil, []measured{{ttlDisabled, disabled}})
}

// DeadLeases writes what a look at a store's dead leases found: a document of all
// of them, by [service, function], and one for each route, by [service, function,
// route], unless Options.NoRoutes is set. It writes zeros too, so that an alarm can
// tell a look that found nothing from no look at all.
//
// The service and the function are those of the program that looks, not those of
// the attempts that died. A route is what [lambdaidem.Event].Template would be; a
// blank one is "(none)". Routes must be few: see the package's documentation.
//
// The metrics say how things stand, not what happened: an alarm takes their
// maximum, not their sum.
func (o *Observer) DeadLeases(all DeadLeases, byRoute map[string]DeadLeases) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock()
	o.write(now, nil, all.values())
	if !o.routes {
		return
	}
	for _, route := range slices.Sorted(maps.Keys(byRoute)) {
		found := byRoute[route]
		o.write(now, &route, found.values())
	}
}

// measured is a metric with its value.
type measured struct {
	Metric
	value int64
}

func (d *DeadLeases) values() []measured {
	return []measured{
		{deadLeases, int64(d.Count)}, {recentDeadLeases, int64(d.Recent)}, {oldestDeadLease, max(0, d.Oldest.Milliseconds())},
		{heldRecords, int64(d.Held)}, {oldestHeldRecord, max(0, d.OldestHeld.Milliseconds())},
	}
}

// write writes a document. It has one set of dimensions, since what is true of a
// route is not true of all. The caller holds the lock.
func (o *Observer) write(now time.Time, route *string, values []measured) {
	b := append(o.line[:0], `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(append(b, o.namespace...), `"service","function"`...)
	if route != nil {
		b = append(b, `,"route"`...)
	}
	b = append(b, `]],"Metrics":[`...)
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"Name":"%s","Unit":"%s"}`, v.Name, v.Unit)
	}
	b = append(append(b, `]}]}`...), o.dimensions...)
	if route != nil {
		b = append(appendDimension(append(b, `,"route":"`...), *route), '"')
	}
	for _, v := range values {
		b = fmt.Appendf(b, `,"%s":%d`, v.Name, v.value)
	}
	o.line = append(b, "}\n"...)
	_, _ = o.w.Write(o.line)
}
