package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/queue"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// queueEndpoint is the SDK's variable for the endpoint of SQS: where it is set, the
// queues are made there, else in this process.
const queueEndpoint = "AWS_ENDPOINT_URL_SQS"

// queues are those of the template, at their SQS.
type queues struct {
	server *queue.Server // nil: somebody else's SQS
	client *sqs.Client
}

// startQueues creates the template's queues, and gives the functions their endpoint
// and URLs. It does nothing for a template that neither has queues nor reads any.
func (s *Stack) startQueues(ctx context.Context, o Options) error {
	if len(s.template.Queues) == 0 && !readsQueues(s.template) {
		return nil
	}
	q := &queues{}
	s.queues = q
	endpoint := os.Getenv(queueEndpoint)
	if endpoint == "" {
		options := queue.Options{Region: s.template.Region, AccountID: s.template.AccountID}
		if o.Queues != nil {
			o.Queues(&options)
		}
		var err error
		if q.server, err = queue.Start(ctx, options); err != nil {
			return err
		}
		endpoint = q.server.URL()
	}
	q.client = sqs.NewFromConfig(s.database.Config(), func(o *sqs.Options) { o.BaseEndpoint = &endpoint })
	if err := template.CreateQueues(ctx, q.client, s.template.Queues); err != nil {
		return err
	}
	for _, own := range s.template.Queues {
		out, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(own.Name)})
		if err != nil {
			return fmt.Errorf("find the queue %s: %w", own.Name, err)
		}
		s.replace(own.URL, *out.QueueUrl)
	}
	for _, f := range s.template.Functions {
		if _, set := f.Environment[queueEndpoint]; !set {
			f.Environment[queueEndpoint] = endpoint
		}
	}
	return nil
}

// readsQueues tells whether a function reads a queue, or has one told of failures.
func readsQueues(t *template.Template) bool {
	for _, f := range t.Functions {
		for _, source := range f.Sources {
			if source.Table == "" || source.OnFailure != "" {
				return true
			}
		}
	}
	return false
}

// replace gives functions the URL that a queue has at its endpoint, where their
// environment has the template's. Where it stands among other text it stays: SQS goes by
// the name at its end.
func (s *Stack) replace(old, other string) {
	for _, f := range s.template.Functions {
		for name, value := range f.Environment {
			if value == old {
				f.Environment[name] = other
			}
		}
	}
}

// startSources begins to deliver what the template's event source mappings read.
func (s *Stack) startSources(ctx context.Context, o Options) error {
	options := eventsource.Options{Template: s.template, Invoke: s.emulator.Invoke, Capacity: s.emulator.Capacity, Log: o.FunctionLog}
	if s.queues != nil {
		options.SQS = s.queues.client
	}
	options.Streams = dynamodbstreams.NewFromConfig(s.database.Config())
	var err error
	s.sources, err = eventsource.Start(ctx, options)
	return err
}

// stop ends the queues in this process; somebody else's SQS loses ours alone.
func (q *queues) stop(ours []template.Queue) error {
	if q.server != nil {
		return q.server.Close()
	}
	if q.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, own := range ours {
		found, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(own.Name)})
		if missing := (*types.QueueDoesNotExist)(nil); errors.As(err, &missing) {
			continue // it may not have been made
		}
		if err == nil {
			_, err = q.client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("delete the queue %s: %w", own.Name, err))
		}
	}
	return errors.Join(errs...)
}
