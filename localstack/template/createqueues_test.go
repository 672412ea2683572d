package template_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/queue"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// direct hands the SDK's requests to a handler in this process.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	d.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// newQueues is an SQS of another account than the templates'.
func newQueues(t *testing.T) (*queue.Service, *sqs.Client) {
	t.Helper()
	service := queue.New(queue.Options{AccountID: "123456789012"})
	t.Cleanup(func() { _ = service.Close() })
	return service, sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://sqs.local"), HTTPClient: direct{service}, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

func TestD1_CreateQueuesAsTheTemplateSaysAndAgain(t *testing.T) {
	service, client := newQueues(t)
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
		"Orders": {"VisibilityTimeout": "30", "DelaySeconds": "0", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0", "MaximumMessageSize": "1048576"},
		"Ledger.fifo": {
			"VisibilityTimeout": "60", "DelaySeconds": "1", "MessageRetentionPeriod": "1209600", "ReceiveMessageWaitTimeSeconds": "20", "MaximumMessageSize": "4096",
			"FifoQueue": "true", "ContentBasedDeduplication": "true",
			// Its target is named as the endpoint names it.
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:local-dead.fifo","maxReceiveCount":5}`,
		},
		"local-dead.fifo": {"FifoQueue": "true", "ContentBasedDeduplication": "false"},
	} {
		q, err := service.Queue(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		is, err := q.Attributes()
		if err != nil {
			t.Fatal(err)
		}
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
			service, client := newQueues(t)
			for queue, attributes := range map[string]map[string]string{"is": {"VisibilityTimeout": "1"}, "is.fifo": {"FifoQueue": "true"}} {
				if _, err := service.CreateQueue(queue, attributes); err != nil {
					t.Fatal(err)
				}
			}
			if err := template.CreateQueues(t.Context(), client, c.queues); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want one that begins with %q", err, c.want)
			}
		})
	}
}

// A dead-letter queue of another template.
func TestD1_CreateQueuesFindsADeadLetterQueueThatIsThere(t *testing.T) {
	service, client := newQueues(t)
	if _, err := service.CreateQueue("theirs", nil); err != nil {
		t.Fatal(err)
	}
	ours := template.Queue{LogicalID: "A", Name: "a", Retention: time.Hour, DeadLetter: "arn:aws:sqs:us-east-1:000000000000:theirs", MaxReceives: 2}
	if err := template.CreateQueues(t.Context(), client, []template.Queue{ours}); err != nil {
		t.Fatal(err)
	}
	q, err := service.Queue("a")
	if err != nil {
		t.Fatal(err)
	}
	attributes, _ := q.Attributes()
	if want := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:theirs","maxReceiveCount":2}`; attributes["RedrivePolicy"] != want || attributes["VisibilityTimeout"] != "0" {
		t.Errorf("attributes %v", attributes)
	}
}
