package eventsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Options configure [Start].
type Options struct {
	// Template is the SAM template whose functions are invoked by their Sources. Required.
	Template *template.Template

	// Invoke runs the function with this logical ID and returns its result, like the method
	// Invoke of [emulator.Emulator]. An error means that the function was not invoked, or that
	// the result is unknown. Invoke must return when its context ends, which is when the context
	// of Start ends. Required.
	Invoke func(ctx context.Context, function string, payload []byte) (emulator.Result, error)

	// Capacity returns how many invocations of a function, given by its logical ID, can run at
	// the same time. With an emulator, that is MaxProcesses times the number of slots of a
	// process; Invoke makes further invocations wait. At most this many batches are in flight for
	// all queues of the function together, so that no message's visibility timeout runs while the
	// message waits for a process. Other invocations of the function, such as those of its
	// streams, are not counted. If Capacity is nil or returns 0, there is no limit. Default: nil.
	Capacity func(function string) int

	// SQS is the client for the queues, which are found by their names, in ElasticMQ or any other
	// SQS. Required if a source is a queue, or if a stream has a queue as its OnFailure
	// destination.
	SQS SQS

	// Streams is the client for the streams, which are found by the names of their tables, in
	// DynamoDB Local. Required if a source is a stream.
	Streams *dynamodbstreams.Client

	// Log receives a line for each batch that failed, which says what was retried, bisected or
	// given up, and why. It also receives a warning for each source without
	// ReportBatchItemFailures, and a line whenever a failure is lost because the setting is
	// missing. Default: os.Stderr.
	Log io.Writer
}

// SQS has the methods of [sqs.Client] that the mappings call.
type SQS interface {
	GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, optFns ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Mappings are the running event source mappings of one template. [Mappings.Close] stops them.
type Mappings struct {
	stop    context.CancelFunc
	running sync.WaitGroup
}

// source polls a queue or a stream for one mapping.
type source interface {
	// prepare finds the queue or stream, and the position in the stream where reading begins.
	prepare(ctx context.Context) error
	// run delivers batches until the context polling ends. It returns when no invocation is
	// running any more.
	run(polling context.Context)
}

// Start finds the queues and streams of all Sources and starts to deliver their messages and
// records. The tables and queues must exist. A record that is written to a stream after Start has
// returned is delivered even if the source has StartingPosition LATEST.
//
// Start returns an error if Lambda would refuse a mapping ("CreateEventSourceMapping"), if a
// queue or stream does not exist, or if this package can't emulate a setting of the template.
//
// The mappings run until [Mappings.Close] is called or ctx ends. If ctx ends, running invocations
// are canceled.
func Start(ctx context.Context, o Options) (*Mappings, error) {
	if o.Template == nil || o.Invoke == nil {
		return nil, errors.New("eventsource: Options.Template and Options.Invoke are required")
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	log := &logger{w: o.Log}
	var sources []source
	for _, f := range o.Template.Functions {
		together := newRoom(f, o.Capacity)
		for _, s := range f.Sources {
			m := mapping{ctx: ctx, options: o, function: f, source: s, room: together, log: log}
			made, err := m.made()
			if err == nil {
				err = made.prepare(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("eventsource: %s: %w", m.name(), err)
			}
			m.warnUnreported()
			sources = append(sources, made)
		}
	}
	polling, stop := context.WithCancel(ctx)
	m := &Mappings{stop: stop}
	for _, s := range sources {
		m.running.Go(func() { s.run(polling) })
	}
	return m, nil
}

// Close stops polling, and waits until the running invocations have ended and their results are
// processed. If the context of Start ends, these invocations are canceled. Close always returns
// nil, and may be called again.
//
// Messages that were not delivered stay in their queue. The position in a stream is lost: the
// next Start begins at TRIM_HORIZON or LATEST again.
func (m *Mappings) Close() error {
	m.stop()
	m.running.Wait()
	return nil
}
