package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

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
	urls   []string // of those that are there
}

// startQueues creates the template's queues, and gives the functions their endpoint
// and URLs. Without queues it does nothing.
func (s *Stack) startQueues(ctx context.Context, o Options) error {
	if len(s.template.Queues) == 0 {
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
	} else {
		renameQueues(s.template, "local-"+rand.Text()[:12]+"-")
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
		q.urls = append(q.urls, *out.QueueUrl)
		s.replace(own.URL, *out.QueueUrl)
	}
	for _, f := range s.template.Functions {
		if _, set := f.Environment[queueEndpoint]; !set {
			f.Environment[queueEndpoint] = endpoint
		}
	}
	return nil
}

// replace gives functions another value where their environment has the old one.
func (s *Stack) replace(old, other string) {
	for _, f := range s.template.Functions {
		for name, value := range f.Environment {
			if value == old {
				f.Environment[name] = other
			}
		}
	}
}

// renameQueues gives every queue a name of its own, since others use that SQS too.
func renameQueues(t *template.Template, prefix string) {
	renamed := func(arn string) string {
		at := strings.LastIndexByte(arn, ':') + 1
		for _, q := range t.Queues {
			if q.Name == prefix+arn[at:] {
				return arn[:at] + q.Name
			}
		}
		return arn
	}
	for i := range t.Queues {
		t.Queues[i].Name = prefix + t.Queues[i].Name
	}
	for i := range t.Queues {
		t.Queues[i].DeadLetter = renamed(t.Queues[i].DeadLetter)
	}
	for _, f := range t.Functions {
		for i := range f.Sources {
			f.Sources[i].ARN, f.Sources[i].OnFailure = renamed(f.Sources[i].ARN), renamed(f.Sources[i].OnFailure)
		}
	}
}

// startSources begins to deliver what the template's event source mappings read.
func (s *Stack) startSources(ctx context.Context, o Options) error {
	options := eventsource.Options{Template: s.template, Invoke: s.emulator.Invoke, Log: o.FunctionLog}
	if s.queues != nil {
		options.SQS = s.queues.client
	}
	options.Streams = dynamodbstreams.NewFromConfig(s.database.Config())
	var err error
	s.sources, err = eventsource.Start(ctx, options)
	return err
}

// stop ends the queues in this process; somebody else's SQS loses ours alone.
func (q *queues) stop() error {
	if q.server != nil {
		return q.server.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, url := range q.urls {
		if _, err := q.client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(url)}); err != nil {
			errs = append(errs, fmt.Errorf("delete the queue %s: %w", url, err))
		}
	}
	return errors.Join(errs...)
}
