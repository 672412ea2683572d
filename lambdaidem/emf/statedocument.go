package emf

import (
	"fmt"
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

// measured is a metric that Observer.DeadLeases or Observer.TTL writes, and its value.
type measured struct {
	Metric
	value int64
}

// write writes a document with metrics of Observer.DeadLeases or Observer.TTL. Its dimensions are
// [service, function, route] if route is not nil, and [service, function] otherwise. Each set of
// dimensions needs its own document, because the values of one route differ from those of all
// routes. The caller holds mu.
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
