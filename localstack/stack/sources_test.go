package stack

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// somebodyElsesSQS starts an ElasticMQ without queues and sets AWS_ENDPOINT_URL_SQS to its
// endpoint.
func somebodyElsesSQS(t *testing.T) *elasticmq.Server {
	t.Helper()
	server, err := elasticmq.Start(t.Context(), func(o *elasticmq.Options) { o.Own = true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv(elasticmq.EndpointVariable, server.Endpoint())
	return server
}

// queueNames returns the names of all queues in alphabetical order.
func queueNames(t *testing.T, client *sqs.Client) []string {
	t.Helper()
	out, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, url := range out.QueueUrls {
		names = append(names, url[strings.LastIndexByte(url, '/')+1:])
	}
	slices.Sort(names)
	return names
}

// If AWS_ENDPOINT_URL_SQS is set, the stack creates the template's queues there under generated
// names, with the connections that the template describes. At the end, it deletes these queues
// and no others.
func TestQueuesOfSomebodyElsesSQSAreOursAlone(t *testing.T) {
	besideADatabase(t)
	server := somebodyElsesSQS(t)
	client := server.Client()
	if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("theirs")}); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Options{Progress: io.Discard, FunctionLog: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	names := queueNames(t, client)
	for _, q := range s.Template().Queues {
		want = append(want, q.Name)
		if !strings.HasPrefix(q.Name, "local-") || q.FIFO != strings.HasSuffix(q.Name, ".fifo") {
			t.Errorf("the queue %s has the name %s; want one of its own, with the end that its kind needs", q.LogicalID, q.Name)
		}
		found, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &q.Name})
		if err != nil {
			t.Fatal(err)
		}
		out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: found.QueueUrl, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		attributes := out.Attributes
		if dead := q.DeadLetter[strings.LastIndexByte(q.DeadLetter, ':')+1:]; !strings.Contains(attributes["RedrivePolicy"], dead) || dead != "" && !strings.HasPrefix(dead, "local-") {
			t.Errorf("%s: the redrive policy is %s; want %s in it", q.Name, attributes["RedrivePolicy"], dead)
		}
	}
	want = append(want, "theirs")
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the queues are %v; want %v", names, want)
	}
	sent := 0
	for _, f := range s.Template().Functions {
		if f.Environment[elasticmq.EndpointVariable] != s.gates[0].URL() {
			t.Errorf("%s calls SQS at %q; want the proxy before it, %s", f.LogicalID, f.Environment[elasticmq.EndpointVariable], s.gates[0].URL())
		}
		if url := f.Environment["NOTIFICATIONS_QUEUE_URL"]; url != "" {
			sent++
			if _, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url}); err != nil {
				t.Errorf("%s has the queue %s: %v", f.LogicalID, url, err)
			}
		}
		for _, source := range f.Sources {
			if source.Table == "" && !strings.Contains(source.ARN, ":local-") || source.OnFailure != "" && !strings.Contains(source.OnFailure, ":local-") {
				t.Errorf("%s reads %s and tells %q; want the queues' own names", f.LogicalID, source.ARN, source.OnFailure)
			}
		}
	}
	if sent != 1 {
		t.Errorf("%d functions have the queue's URL; want one", sent)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if left := queueNames(t, client); len(left) != 1 || left[0] != "theirs" {
		t.Errorf("at the end the queues are %v; want theirs alone", left)
	}
}

// If Start fails, it deletes the queues that it has created in a foreign SQS.
func TestQueuesOfAStartThatFailedAreRemoved(t *testing.T) {
	besideADatabase(t)
	server := somebodyElsesSQS(t)
	_, err := Start(t.Context(), Options{Progress: io.Discard, FunctionLog: io.Discard, Change: func(sam *template.Template) {
		last := &sam.Queues[len(sam.Queues)-1]
		last.DeadLetter, last.MaxReceives = "arn:aws:sqs:us-east-1:000000000000:nobodys", 3
	}})
	if err == nil || !strings.Contains(err.Error(), "nobodys") {
		t.Errorf("Start = %v; want the dead-letter queue that is missing", err)
	}
	if left := queueNames(t, server.Client()); len(left) != 0 {
		t.Errorf("the queues %v are left behind", left)
	}
}
