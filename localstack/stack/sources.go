package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// startSQS starts ElasticMQ, or uses the SQS at AWS_ENDPOINT_URL_SQS. It does nothing if the
// template has no queues and its functions read none.
func (s *Stack) startSQS(ctx context.Context, o Options) error {
	if len(s.template.Queues) == 0 && !readsQueues(s.template) {
		return nil
	}
	say(o.Progress, "starting ElasticMQ")
	var err error
	s.sqs, err = elasticmq.Start(ctx, func(e *elasticmq.Options) {
		e.Progress, e.Region, e.AccountID = o.Progress, s.template.Region, s.template.AccountID
		if o.Queues != nil {
			o.Queues(e)
		}
	})
	return err //nolint:wrapcheck // it says what was started
}

// createQueues creates the template's queues, and sets the endpoint of SQS and the URLs of the
// queues in the environments of the functions.
func (s *Stack) createQueues(ctx context.Context, o Options) error {
	if s.sqs == nil {
		return nil
	}
	endpoint, err := s.gate(iam.SQS, s.sqs.Endpoint(), o)
	if err != nil {
		return err
	}
	if o.QueueEndpoint != nil {
		endpoint = o.QueueEndpoint(endpoint)
	}
	client := s.sqs.Client()
	if err := template.CreateQueues(ctx, client, s.template.Queues); err != nil {
		return err
	}
	for _, own := range s.template.Queues {
		out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(own.Name)})
		if err != nil {
			return fmt.Errorf("find the queue %s: %w", own.Name, err)
		}
		s.replace(own.URL, *out.QueueUrl)
	}
	for _, f := range s.template.Functions {
		if _, set := f.Environment[elasticmq.EndpointVariable]; !set {
			f.Environment[elasticmq.EndpointVariable] = endpoint
		}
	}
	return nil
}

// readsQueues reports whether a function reads a queue, or has a queue as its OnFailure
// destination.
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

// replace changes environment variables whose value is the URL of a queue in the template to
// the queue's URL at the endpoint. It doesn't change a URL within a longer value. Such a URL
// still works, because SQS uses only the queue's name at its end.
func (s *Stack) replace(old, other string) {
	for _, f := range s.template.Functions {
		for name, value := range f.Environment {
			if value == old {
				f.Environment[name] = other
			}
		}
	}
}

// startSources starts the event source mappings of the template.
func (s *Stack) startSources(ctx context.Context, o Options) error {
	options := eventsource.Options{Template: s.template, Invoke: s.emulator.Invoke, Capacity: s.emulator.Capacity, Log: o.FunctionLog}
	if s.sqs != nil {
		options.SQS = s.sqs.Client()
	}
	options.Streams = dynamodbstreams.NewFromConfig(s.database.Config())
	var err error
	s.sources, err = eventsource.Start(ctx, options)
	return err
}

// stopSQS stops the SQS if startSQS has started it. Otherwise it only deletes the template's
// queues.
func (s *Stack) stopSQS() error {
	if s.sqs.Owned() {
		return s.sqs.Stop() //nolint:wrapcheck // it says what was stopped
	}
	client := s.sqs.Client()
	defer s.sqs.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, own := range s.template.Queues {
		found, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(own.Name)})
		if missing := (*types.QueueDoesNotExist)(nil); errors.As(err, &missing) {
			continue // it was never created
		}
		if err == nil {
			_, err = client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: found.QueueUrl})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("delete the queue %s: %w", own.Name, err))
		}
	}
	return errors.Join(errs...)
}
