package eventsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// mapping is what queues and streams have in common: a source, its function, and how
// to invoke it.
type mapping struct {
	ctx      context.Context //nolint:containedctx // Start's: invocations outlive the polling
	options  Options
	function *template.Function
	source   template.Source
	room     *room // the function's
	log      *logger
}

func (m *mapping) name() string { return m.function.LogicalID + "/" + m.source.Name }

// printf writes one line about the mapping.
func (m *mapping) printf(format string, args ...any) {
	m.log.printf("eventsource: %s: "+format, append([]any{m.name()}, args...)...)
}

// made is the source as it can run, unless Lambda would refuse it
// ("CreateEventSourceMapping") or it can't be emulated.
func (m *mapping) made() (source, error) {
	s := m.source
	if s.Table != "" {
		return m.madeStream()
	}
	name, ok := template.QueueName(s.ARN)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is not the ARN of a queue", s.ARN)
	case m.options.SQS == nil:
		return nil, errors.New("it reads a queue, and Options.SQS is missing")
	case isFIFO(name) && s.BatchSize > maxReceive:
		return nil, fmt.Errorf("BatchSize is %d, and %d at most for a FIFO queue", s.BatchSize, maxReceive)
	case isFIFO(name) && s.Window > 0:
		return nil, errors.New("a FIFO queue has no MaximumBatchingWindowInSeconds")
	case s.BatchSize > maxReceive && s.Window == 0:
		return nil, fmt.Errorf("a BatchSize over %d needs a MaximumBatchingWindowInSeconds of at least 1", maxReceive)
	}
	return &queuePoller{mapping: *m, queue: name}, nil
}

func (m *mapping) madeStream() (source, error) {
	if m.options.Streams == nil {
		return nil, errors.New("it reads a stream, and Options.Streams is missing")
	}
	s := &streamPoller{mapping: *m}
	if m.source.OnFailure == "" {
		return s, nil
	}
	name, ok := template.QueueName(m.source.OnFailure)
	switch {
	case !ok || isFIFO(name):
		return nil, fmt.Errorf("OnFailure is %s; only a standard SQS queue is emulated", m.source.OnFailure)
	case m.options.SQS == nil:
		return nil, errors.New("its OnFailure is a queue, and Options.SQS is missing")
	}
	s.onFailure = name
	return s, nil
}

func isFIFO(queue string) bool { return strings.HasSuffix(queue, ".fifo") }

// region is the mapping's own, as in awsRegion of its records.
func (m *mapping) region() string { return cmp.Or(m.options.Template.Region, "us-east-1") }

func (m *mapping) functionARN() string {
	return template.ARN("lambda", m.region(), cmp.Or(m.options.Template.AccountID, "000000000000"), "function:"+m.function.Name)
}

// maxPayload is what an invocation can take ("Lambda quotas": 6 MB).
const maxPayload = 6 << 20

// payload is the event of some records.
func payload(records [][]byte) []byte {
	event := []byte(`{"Records":[`)
	for i, r := range records {
		if i > 0 {
			event = append(event, ',')
		}
		event = append(event, r...)
	}
	return append(event, `]}`...)
}

// fitting is how many of the records one invocation can take: one at least, since a
// record that is too large alone must be refused by the function's own quota.
func fitting(records [][]byte) int {
	size := len(payload(nil))
	for i, r := range records {
		if size += len(r) + 1; size-1 > maxPayload && i > 0 {
			return i
		}
	}
	return len(records)
}

// outcome is what became of one invocation.
type outcome struct {
	result emulator.Result
	// refused: the function was not invoked, or nobody knows what became of it.
	refused error
	// failed: the batch failed as a whole, for this reason.
	failed error
	// reported are the records that the function reports as failed, by their places.
	reported []int
}

func (o outcome) succeeded() bool {
	return o.refused == nil && o.failed == nil && len(o.reported) == 0
}

// invoke invokes the function once. ids are the identifiers by which an answer can
// name the records.
func (m *mapping) invoke(records [][]byte, ids []string) outcome {
	result, err := m.options.Invoke(m.ctx, m.function.LogicalID, payload(records))
	o := outcome{result: result, refused: err}
	switch {
	case err != nil:
	case result.FunctionError != "":
		o.failed = fmt.Errorf("%s: %s", result.FunctionError, result.Payload)
	case m.source.ReportsFailures:
		o.reported, o.failed = reported(result.Payload, ids)
	case listsFailures(result.Payload):
		m.printf("the function answered with batchItemFailures, but the mapping has no %s: "+
			"a batch of %d counts as a success, and the records that failed are LOST", reportSetting, len(records))
	}
	return o
}

// reportSetting is the line of a template that makes Lambda read batchItemFailures.
const reportSetting = "FunctionResponseTypes: [ReportBatchItemFailures]"

// warnUnreported warns about a mapping for which Lambda ignores batchItemFailures.
func (m *mapping) warnUnreported() {
	if m.source.ReportsFailures {
		return
	}
	m.printf("WARNING: the mapping has no %s: Lambda takes an answer that lists failed records for a success, and they are lost; "+
		"set it, or let the function fail the whole batch (BatchOptions.WholeBatch)", reportSetting)
}

// logger writes whole lines, from any goroutine.
type logger struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *logger) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.w, format+"\n", args...) // there is nowhere else to complain to
}
