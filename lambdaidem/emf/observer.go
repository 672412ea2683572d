package emf

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/measure"
)

// Observer writes a document for each event. Make one with [New]; it is safe for
// concurrent use.
type Observer struct {
	routes   bool
	records  bool
	bypassed bool
	clock    func() time.Time

	// What every document has: its namespace and what is before its first set of
	// dimensions; that and an event's sets of them; and their values.
	namespace, head, dimensions []byte

	mu   sync.Mutex // held while a line is made and written, so that lines are whole
	w    io.Writer
	line []byte
}

// New returns an observer. It panics if an option is invalid, and names the field.
func New(optFns ...func(*Options)) *Observer {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o = o.settle()
	o.check()
	namespace := `,"CloudWatchMetrics":[{"Namespace":"` + o.Namespace + `","Dimensions":[[`
	head := namespace + `"service","function"]`
	if !o.NoRoutes {
		head += `,["service","function","route"]`
	}
	dimensions := appendDimension([]byte(`,"service":"`), o.Service)
	dimensions = appendDimension(append(dimensions, `","function":"`...), o.Function)
	return &Observer{routes: !o.NoRoutes, records: o.Records, bypassed: o.Bypassed, clock: o.Clock, w: o.Writer,
		namespace: []byte(namespace), head: []byte(head + `],"Metrics":[`), dimensions: append(dimensions, '"')}
}

// Observe writes the event's document. It writes none for
// [lambdaidem.EventBypassed] unless Options.Bypassed is set.
func (o *Observer) Observe(_ context.Context, e lambdaidem.Event) {
	if e.Kind == lambdaidem.EventBypassed && !o.bypassed {
		return
	}
	sample := measure.Of(e)
	now := o.clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = o.appendDocument(o.line[:0], now, e.Kind, e.RecordID, sample)
	_, _ = o.w.Write(o.line) // one call, so that it is one line whoever else writes there
}

// value is a metric with its value.
type value struct {
	Metric
	value float64
}

// maxValues bounds the values of one event.
const maxValues = 7

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
	if o.records { // no metrics: for who reads the log
		b = append(append(b, `,"outcome":"`...), s.Outcome...)
		if b = append(b, '"'); record != "" {
			b = append(appendText(append(b, `,"record":"`...), record, maxRecord), '"')
		}
	}
	if s.Reason != "" { // no metric: for who reads the log
		b = append(append(append(b, `,"reason":"`...), s.Reason...), '"')
	}
	for _, v := range values {
		b = append(append(append(b, `,"`...), v.Name...), `":`...)
		b = strconv.AppendFloat(b, v.value, 'f', -1, 64)
	}
	return append(b, "}\n"...)
}

// appendValues appends what an event adds to the metrics.
func appendValues(values []value, kind lambdaidem.Kind, s measure.Sample) []value {
	values = append(values, value{countOf(kind), 1})
	values = appendTime(values, duration, s.Call)
	values = appendTime(values, handlerDuration, s.Handler)
	values = appendTime(values, storeDuration, s.Store)
	if s.Attempt > 0 {
		values = append(values, value{attempt, float64(s.Attempt)})
	}
	if s.Throttle != "" {
		values = append(values, value{throttled, 1}, value{limitOf(s.Throttle), 1})
	}
	return values
}

// appendTime appends a duration in milliseconds, to the microsecond, if there is
// one.
func appendTime(values []value, m Metric, d time.Duration) []value {
	if d <= 0 {
		return values
	}
	return append(values, value{m, float64(d.Microseconds()) / 1000})
}

// What a document has of a text, in bytes: of a dimension's value as much as
// CloudWatch takes, of a record's id more than any has.
const (
	maxDimension = 1024
	maxRecord    = 128
)

// appendDimension appends a dimension's value. CloudWatch refuses one that is blank.
func appendDimension(b []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		text = measure.None
	}
	return appendText(b, text, maxDimension)
}

// appendText appends most bytes of a text at most: printable ASCII, as CloudWatch
// wants a dimension's value, with neither quotation marks nor backslashes, so that it
// is JSON as it stands. All else is %XX, byte by byte.
func appendText(b []byte, text string, most int) []byte {
	const digits = "0123456789ABCDEF"
	end := len(b) + most
	for _, c := range []byte(text) {
		plain := ' ' <= c && c < 0x7f && c != '"' && c != '\\'
		switch {
		case plain && len(b) < end:
			b = append(b, c)
		case !plain && len(b)+2 < end:
			b = append(b, '%', digits[c>>4], digits[c&15])
		default:
			return b
		}
	}
	return b
}
