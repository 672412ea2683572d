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

// mapping is the common part of queuePoller and streamPoller: a source, the function that it
// invokes, and how to invoke it.
type mapping struct {
	ctx      context.Context //nolint:containedctx // the context of Start, because invocations outlive the polling
	options  Options
	function *template.Function
	source   template.Source
	room     *room // shared by all queues of the function
	log      *logger
}

func (m *mapping) name() string { return m.function.LogicalID + "/" + m.source.Name }

// printf logs one line that begins with the mapping's name.
func (m *mapping) printf(format string, args ...any) {
	m.log.printf("eventsource: %s: "+format, append([]any{m.name()}, args...)...)
}

// made returns the poller of the mapping's source. It returns an error if Lambda would refuse the
// mapping ("CreateEventSourceMapping") or if this package can't emulate it.
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

// region returns the Region of the mapping, which is also the awsRegion of the records. Default:
// us-east-1.
func (m *mapping) region() string { return cmp.Or(m.options.Template.Region, "us-east-1") }

func (m *mapping) functionARN() string {
	return template.ARN("lambda", m.region(), cmp.Or(m.options.Template.AccountID, "000000000000"), "function:"+m.function.Name)
}

// outcome is the result of one invocation.
type outcome struct {
	result emulator.Result
	// refused is the error of Invoke: the function was not invoked, or the result is unknown.
	refused error
	// failed is the reason why the whole batch failed, or nil.
	failed error
	// reported has the indexes of the records that the function reported as failed.
	reported []int
}

func (o outcome) succeeded() bool {
	return o.refused == nil && o.failed == nil && len(o.reported) == 0
}

// invoke invokes the function once. ids are the identifiers with which the function can report
// records as failed. If the function reports failures but the mapping has no
// ReportBatchItemFailures, invoke logs that these records are lost.
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

// reportSetting is the line of a template that makes Lambda evaluate batchItemFailures.
const reportSetting = "FunctionResponseTypes: [ReportBatchItemFailures]"

// warnUnreported warns about a mapping for which Lambda ignores batchItemFailures.
func (m *mapping) warnUnreported() {
	if m.source.ReportsFailures {
		return
	}
	m.printf("WARNING: the mapping has no %s: Lambda takes an answer that lists failed records for a success, and they are lost; "+
		"set it, or let the function fail the whole batch (BatchOptions.WholeBatch)", reportSetting)
}

// logger writes whole lines. It is safe for concurrent use.
type logger struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *logger) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.w, format+"\n", args...) // there is no other place to report the error
}
