package template_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// otherAccount starts an SQS whose account is not that of the templates.
var otherAccount = sync.OnceValues(func() (*elasticmq.Server, error) {
	return elasticmq.Start(context.Background(), func(o *elasticmq.Options) { o.Own, o.AccountID = true, "123456789012" })
})

// newQueues returns a client for the SQS of otherAccount, which has no queues.
func newQueues(t *testing.T) *sqs.Client {
	t.Helper()
	server, err := otherAccount()
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client(func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	out, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range out.QueueUrls {
		if _, err := client.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
			t.Fatal(err)
		}
	}
	return client
}

func attributesOf(t *testing.T, client *sqs.Client, name string) map[string]string {
	t.Helper()
	found, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: found.QueueUrl, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.Attributes
}

func createQueue(t *testing.T, client *sqs.Client, name string, attributes map[string]string) {
	t.Helper()
	if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
		t.Fatal(err)
	}
}

func TestD1_CreateQueuesAsTheTemplateSaysAndAgain(t *testing.T) {
	client := newQueues(t)
	read, err := template.Parse("t.yaml", []byte(withSources), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := template.CreateQueues(t.Context(), client, read.Queues); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]map[string]string{
		"Orders": {"VisibilityTimeout": "30", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0"},
		"Ledger.fifo": {
			"VisibilityTimeout": "60", "DelaySeconds": "1", "ReceiveMessageWaitTimeSeconds": "20",
			"FifoQueue": "true", "ContentBasedDeduplication": "true",
			// The ARN of the dead-letter queue has the endpoint's account.
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:local-dead.fifo","maxReceiveCount":5}`,
		},
		"local-dead.fifo": {"FifoQueue": "true", "ContentBasedDeduplication": "false"},
	} {
		is := attributesOf(t, client, name)
		got := map[string]string{}
		for key := range want {
			got[key] = is[key]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestD1_CreateQueuesRefusesWhatCannotBe(t *testing.T) {
	const head = "arn:aws:sqs:us-east-1:000000000000:"
	named := func(name, dead string) template.Queue {
		return template.Queue{LogicalID: strings.ToUpper(name), Name: name, Visibility: 30 * time.Second, Retention: time.Hour, DeadLetter: dead, MaxReceives: 3}
	}
	for name, c := range map[string]struct {
		queues []template.Queue
		want   string
	}{
		"a circle":          {[]template.Queue{named("a", head+"b"), named("b", head+"c"), named("c", head+"a")}, "queue a (A): its dead-letter queues lead back to it"},
		"itself":            {[]template.Queue{named("a", head+"a")}, "queue a (A): its dead-letter queues lead back to it"},
		"not there":         {[]template.Queue{named("a", head+"other")}, "queue a (A): its dead-letter queue other is not in the template, and is not there"},
		"no ARN":            {[]template.Queue{named("a", "other")}, "queue a (A): its dead-letter queue other is no queue's ARN"},
		"another one":       {[]template.Queue{named("is", "")}, "queue is (IS): it exists with other attributes than the template's"},
		"an invalid name":   {[]template.Queue{named("a b", "")}, "queue a b (A B): creating it: "},
		"theirs is invalid": {[]template.Queue{named("a", head+"b"), named("b", head+"is.fifo")}, "queue b (B): creating it: "},
	} {
		t.Run(name, func(t *testing.T) {
			client := newQueues(t)
			for queue, attributes := range map[string]map[string]string{"is": {"VisibilityTimeout": "1"}, "is.fifo": {"FifoQueue": "true"}} {
				createQueue(t, client, queue, attributes)
			}
			if err := template.CreateQueues(t.Context(), client, c.queues); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want one that begins with %q", err, c.want)
			}
		})
	}
}

// A dead-letter queue that is not in the template, but exists, is found by its name.
func TestD1_CreateQueuesFindsADeadLetterQueueThatIsThere(t *testing.T) {
	client := newQueues(t)
	createQueue(t, client, "theirs", nil)
	ours := template.Queue{LogicalID: "A", Name: "a", Retention: time.Hour, DeadLetter: "arn:aws:sqs:us-east-1:000000000000:theirs", MaxReceives: 2}
	if err := template.CreateQueues(t.Context(), client, []template.Queue{ours}); err != nil {
		t.Fatal(err)
	}
	attributes := attributesOf(t, client, "a")
	if want := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:theirs","maxReceiveCount":2}`; attributes["RedrivePolicy"] != want || attributes["VisibilityTimeout"] != "0" {
		t.Errorf("attributes %v", attributes)
	}
}
