package emf

import (
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/measure"
)

// appendDocument appends the document of one event, including the newline.
func (o *Observer) appendDocument(b []byte, now time.Time, kind lambdaidem.Kind, record string, s measure.Sample) []byte {
	var room [maxValues]value
	values := appendValues(room[:0], kind, s)
	b = append(b, `{"_aws":{"Timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(b, o.head...)
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"Name":"`...), v.Name...)
		b = append(append(append(b, `","Unit":"`...), v.Unit...), `"}`...)
	}
	b = append(append(b, `]}]}`...), o.dimensions...)
	if o.routes {
		b = append(appendDimension(append(b, `,"route":"`...), s.Route), '"')
	}
	if o.records { // not metrics, but members for log queries
		b = append(append(b, `,"outcome":"`...), s.Outcome...)
		if b = append(b, '"'); record != "" {
			b = append(appendText(append(b, `,"record":"`...), record, maxRecord), '"')
		}
	}
	if s.Reason != "" { // not a metric, but a member for log queries
		b = append(append(append(b, `,"reason":"`...), s.Reason...), '"')
	}
	for _, v := range values {
		b = append(append(append(b, `,"`...), v.Name...), `":`...)
		b = strconv.AppendFloat(b, v.value, 'f', -1, 64)
	}
	return append(b, "}\n"...)
}

// value is a metric and the number to record for it.
type value struct {
	Metric
	value float64
}

// appendValues appends the values that an event adds to the metrics.
func appendValues(values []value, kind lambdaidem.Kind, s measure.Sample) []value {
	values = append(values, value{countOf(kind), 1})
	values = appendDuration(values, duration, s.Call)
	values = appendDuration(values, handlerDuration, s.Handler)
	values = appendDuration(values, storeDuration, s.Store)
	if s.Attempt > 0 {
		values = append(values, value{attempt, float64(s.Attempt)})
	}
	if s.Throttle != "" {
		values = append(values, value{throttled, 1}, value{limitOf(s.Throttle), 1})
	}
	return values
}

// maxValues is the maximum number of values that appendValues appends for one event.
const maxValues = 7

// appendDuration appends a duration in milliseconds, rounded down to a microsecond, unless it
// is 0 or negative.
func appendDuration(values []value, m Metric, d time.Duration) []value {
	if d <= 0 {
		return values
	}
	return append(values, value{m, float64(d.Microseconds()) / 1000})
}
