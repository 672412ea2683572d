package emf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Metrics of the state of a store and its table: see [Observer.DeadLeases] and
// [Observer.TTL].
var (
	deadLeases       = Metric{Name: "DeadLeases", Unit: Count}
	recentDeadLeases = Metric{Name: "RecentDeadLeases", Unit: Count}
	oldestDeadLease  = Metric{Name: "OldestDeadLease", Unit: Milliseconds}
	heldRecords      = Metric{Name: "HeldRecords", Unit: Count}
	oldestHeldRecord = Metric{Name: "OldestHeldRecord", Unit: Milliseconds}
	ttlDisabled      = Metric{Name: "TTLDisabled", Unit: Count}
)

// recent limits what DeadLeases.Recent counts: dead leases that ended less than this time
// ago.
const recent = time.Hour

// DeadLeases counts the leases of attempts that have probably died: the lease has ended, but the
// attempt has neither completed nor released its record. If the next retry may take over the
// record, the lease counts as dead. If the record waits for an operator, it counts as held instead.
// The zero value of DeadLeases is empty and ready for [DeadLeases.Add].
type DeadLeases struct {
	Count      int           // number of dead leases, not including held records
	Recent     int           // number of dead leases in Count that ended within the last hour
	Oldest     time.Duration // time since the end of the oldest dead lease; 0 if there is none
	Held       int           // number of held records
	OldestHeld time.Duration // time since the end of the oldest lease of a held record; 0 if there is none
}

// Add counts one more lease. ago is the time since the lease ended. held reports whether the
// record of the lease waits for an operator.
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

// None reports whether there are neither dead leases nor held records.
func (d *DeadLeases) None() bool { return d.Count == 0 && d.Held == 0 }

// TTL writes the metric TTLDisabled, with the dimensions [service, function]: 0 if the
// table's TTL is enabled, 1 if it is not. A table without TTL grows forever and keeps
// data that should have been deleted.
func (o *Observer) TTL(enabled bool) {
	disabled := int64(1)
	if enabled {
		disabled = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(o.clock(), nil, []measured{{ttlDisabled, disabled}})
}

// DeadLeases writes the counts of a store's dead leases and held records, as found by a
// program that looks for them regularly. all has the counts of all routes together, and
// byRoute has the counts of each route. The method writes all to one document, with the
// dimensions [service, function]. Unless Options.NoRoutes is set, it also writes one
// document for each route, with the dimensions [service, function, route]. It writes zeros
// too, so that an alarm can distinguish a search that found nothing from a search that did
// not run.
//
// The service and function are those of the program that calls DeadLeases, not those of
// the attempts that died. The keys of byRoute have the form of [lambdaidem.Event].Template.
// A blank key is written as "(none)". There must be few keys, because CloudWatch charges for
// each.
//
// The values are the state at one moment, not counts of new events. An alarm should use
// their maximum, not their sum.
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

// measured is a metric of dead leases or of the table, with its value.
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

// write writes a document with one set of dimensions: [service, function, route] if route
// is not nil, and [service, function] otherwise. An event's document has both sets, because
// an event has the same values for both. Dead leases need a document for each set, because
// the values of one route differ from the values of all routes together. The caller holds
// mu.
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
