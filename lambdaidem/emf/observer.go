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

// Observer is a [lambdaidem.Observer] that writes a document for each event: a line of JSON
// in CloudWatch's embedded metric format. Create one with [New]. It is safe for concurrent
// use.
type Observer struct {
	routes   bool
	records  bool
	bypassed bool
	clock    func() time.Time

	// Parts of the JSON that are the same in every document. New builds them once:
	//
	//   - namespace is the text between the timestamp and the first name of a dimension.
	//   - head is the text between the timestamp and the list of an event's metrics. It
	//     begins with the same text as namespace, and then names the dimensions of an
	//     event.
	//   - dimensions has the values of the dimensions service and function.
	namespace, head, dimensions []byte

	mu   sync.Mutex // held while a line is built and written, so that lines don't mix
	w    io.Writer
	line []byte // the buffer of the last line, for reuse
}

// New returns an Observer. It panics if an option is invalid. The panic's text names the
// field.
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
	_, _ = o.w.Write(o.line) // a single call keeps the line whole if others write to the same file
}

// value is a metric of an event, with its value.
type value struct {
	Metric
	value float64
}

// maxValues is the maximum number of values that appendValues appends for one event.
const maxValues = 7

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

// appendDuration appends a duration in milliseconds, rounded down to a microsecond, unless it
// is 0 or negative.
func appendDuration(values []value, m Metric, d time.Duration) []value {
	if d <= 0 {
		return values
	}
	return append(values, value{m, float64(d.Microseconds()) / 1000})
}

// The maximum lengths of texts in a document, in bytes. Longer texts are cut.
const (
	maxDimension = 1024 // CloudWatch's limit for the value of a dimension
	maxRecord    = 128  // for a record's id, which is always shorter
)

// appendDimension appends the value of a dimension. It replaces a blank value by "(none)",
// because CloudWatch rejects blank values.
func appendDimension(b []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		text = measure.None
	}
	return appendText(b, text, maxDimension)
}

// appendText appends a text to a JSON string. most is the maximum number of bytes to
// append; appendText cuts a longer text. CloudWatch accepts only printable ASCII in the
// value of a dimension, so every other byte is written as %XX. Quotation marks and
// backslashes, which would need an escape in JSON, are written as %XX too.
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
