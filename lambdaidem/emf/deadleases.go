package emf

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// What a look at dead leases measures: see [Observer.DeadLeases].
var (
	deadLeases      = Metric{Name: "DeadLeases", Unit: Count}
	oldestDeadLease = Metric{Name: "OldestDeadLease", Unit: Milliseconds}
)

// DeadLeases is what a look found: the leases that are over while their attempts
// neither completed nor gave up (L6).
type DeadLeases struct {
	Count  int
	Oldest time.Duration // since the end of the one that ended first; 0 if there is none
}

// DeadLeases writes what a look at a store's dead leases found (O2): a document of
// all of them, by [service, function], and one for each route, by [service,
// function, route], unless Options.NoRoutes is set. None is a document too, of
// zeros: then an alarm can tell that all is well from that nobody looked.
//
// The service and the function are those of the program that looks, and not those of
// the attempts that died. A route is what [lambdaidem.Event].Template would be; the
// empty one is "(none)". Routes must be few: see the package's documentation.
//
// It is no event of a guard's. Both metrics are what is, not what came: an alarm
// takes their maximum, and no sum.
func (o *Observer) DeadLeases(all DeadLeases, byRoute map[string]DeadLeases) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock()
	o.writeDeadLeases(now, nil, all)
	if !o.routes {
		return
	}
	for _, route := range slices.Sorted(maps.Keys(byRoute)) {
		o.writeDeadLeases(now, &route, byRoute[route])
	}
}

func (o *Observer) writeDeadLeases(now time.Time, route *string, found DeadLeases) {
	o.line = o.appendDeadLeases(o.line[:0], now, route, found)
	_, _ = o.w.Write(o.line)
}

// appendDeadLeases appends a document. It has one set of dimensions, since what is
// true of a route is not true of all.
func (o *Observer) appendDeadLeases(b []byte, now time.Time, route *string, found DeadLeases) []byte {
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(b, o.namespace...)
	b = append(b, `"service","function"`...)
	if route != nil {
		b = append(b, `,"route"`...)
	}
	b = append(b, `]],"Metrics":[{"Name":"DeadLeases","Unit":"Count"},{"Name":"OldestDeadLease","Unit":"Milliseconds"}]}]}`...)
	b = append(b, o.dimensions...)
	if route != nil {
		b = append(appendDimension(append(b, `,"route":"`...), *route), '"')
	}
	b = strconv.AppendInt(append(b, `,"DeadLeases":`...), int64(found.Count), 10)
	b = strconv.AppendInt(append(b, `,"OldestDeadLease":`...), max(0, found.Oldest.Milliseconds()), 10)
	return append(b, "}\n"...)
}
