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

// Options configure Start.
type Options struct {
	// Template says which functions have which Sources. Required.
	Template *template.Template

	// Invoke runs a function, by logical ID, and returns what it answered:
	// emulator.(*Emulator).Invoke. An error means that the function was not
	// invoked, or that nobody knows what became of it. It must return when its
	// context ends, which is when Start's does. Required.
	Invoke func(ctx context.Context, function string, payload []byte) (emulator.Result, error)

	// Capacity is how many invocations of a function, by logical ID, run at a time
	// where Invoke lets more wait in line: of the emulator's, MaxProcesses and the
	// slots of a process multiplied. No more batches of all its queues together are
	// in flight, so that no message's visibility timeout runs while the message
	// waits. What else invokes the function, its streams among them, is not
	// counted. Default, and 0: no bound.
	Capacity func(function string) int

	// SQS reaches the queues, by their names: those of ElasticMQ, or of any
	// other SQS. Required if a source is a queue, or what a stream gives up goes
	// to one.
	SQS SQS

	// Streams reaches the streams of DynamoDB Local, by the names of their tables.
	// Required if a source is a stream.
	Streams *dynamodbstreams.Client

	// Log gets a line for each batch that failed: what was retried, bisected or
	// given up, and why. It also gets a line for each source without
	// ReportBatchItemFailures, and for each failure that is lost for want of it.
	// Default: os.Stderr.
	Log io.Writer
}

// SQS is as much of [sqs.Client] as the mappings call.
type SQS interface {
	GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, optFns ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, optFns ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Mappings are the event source mappings of one template. Close ends them.
type Mappings struct {
	stop    context.CancelFunc
	running sync.WaitGroup
}

// source is one mapping on its way.
type source interface {
	// prepare finds what it reads from, and where to begin.
	prepare(ctx context.Context) error
	// run delivers until polling ends, and returns when no invocation is under way.
	run(polling context.Context)
}

// Start finds the queues and streams of all Sources and begins to deliver what is in
// them. Tables and queues must be there. What is written to a stream after Start has
// returned is delivered, from LATEST too.
//
// It fails where Lambda would refuse the mapping ("CreateEventSourceMapping"), where a
// queue or stream is not there, and where it can't do what the template asks for.
//
// The mappings end by Close, or when ctx ends; then invocations are not waited for.
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

// Close stops polling and waits for the invocations under way, which settle what they
// were invoked with, no longer than Start's context lasts. It may be called again.
//
// A queue has what was not delivered. The position in a stream is forgotten: the next
// Start begins at TRIM_HORIZON or LATEST again.
func (m *Mappings) Close() error {
	m.stop()
	m.running.Wait()
	return nil
}
