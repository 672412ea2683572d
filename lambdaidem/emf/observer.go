package emf

import (
	"context"
	"io"
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

	// Pieces of JSON that are the same in every document. In an event's document, head follows the
	// timestamp and ends before the first metric. The documents of DeadLeases and TTL have only one
	// set of dimensions each, so they begin with namespace, the part of head before these sets.
	// Then comes dimensions, the values of the dimensions service and function.
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
	o = o.withDefaults()
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
