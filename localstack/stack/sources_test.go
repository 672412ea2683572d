package stack

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Somebody else's SQS gets the template's queues under names of their own, wired as
// the template has them, and loses them and nothing else at the end.
func TestQueuesOfSomebodyElsesSQSAreOursAlone(t *testing.T) {
	besideADatabase(t)
	server, err := queue.Start(t.Context(), queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // a test's
	if _, err := server.CreateQueue("theirs", nil); err != nil {
		t.Fatal(err)
	}
	t.Setenv(queueEndpoint, server.URL())
	s, err := Start(t.Context(), Options{Progress: io.Discard, FunctionLog: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var names, want []string
	for _, q := range server.Queues() {
		names = append(names, q.Name())
	}
	for _, q := range s.Template().Queues {
		want = append(want, q.Name)
		if !strings.HasPrefix(q.Name, "local-") || q.FIFO != strings.HasSuffix(q.Name, ".fifo") {
			t.Errorf("the queue %s has the name %s; want one of its own, with the end that its kind needs", q.LogicalID, q.Name)
		}
		found, err := server.Queue(q.Name)
		if err != nil {
			t.Fatal(err)
		}
		attributes, err := found.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		if dead := q.DeadLetter[strings.LastIndexByte(q.DeadLetter, ':')+1:]; !strings.Contains(attributes["RedrivePolicy"], dead) || dead != "" && !strings.HasPrefix(dead, "local-") {
			t.Errorf("%s: the redrive policy is %s; want %s in it", q.Name, attributes["RedrivePolicy"], dead)
		}
	}
	want = append(want, "theirs")
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the queues are %v; want %v", names, want)
	}
	sent := 0
	for _, f := range s.Template().Functions {
		if f.Environment[queueEndpoint] != server.URL() {
			t.Errorf("%s calls SQS at %q; want %s", f.LogicalID, f.Environment[queueEndpoint], server.URL())
		}
		if url := f.Environment["NOTIFICATIONS_QUEUE_URL"]; url != "" {
			sent++
			client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
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
	if left := server.Queues(); len(left) != 1 || left[0].Name() != "theirs" {
		t.Errorf("at the end the queues are %d; want theirs alone", len(left))
	}
}

// What was made before the start failed doesn't stay at somebody else's SQS.
func TestQueuesOfAStartThatFailedAreRemoved(t *testing.T) {
	besideADatabase(t)
	server, err := queue.Start(t.Context(), queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // a test's
	t.Setenv(queueEndpoint, server.URL())
	_, err = Start(t.Context(), Options{Progress: io.Discard, FunctionLog: io.Discard, Change: func(sam *template.Template) {
		last := &sam.Queues[len(sam.Queues)-1]
		last.DeadLetter, last.MaxReceives = "arn:aws:sqs:us-east-1:000000000000:nobodys", 3
	}})
	if err == nil || !strings.Contains(err.Error(), "nobodys") {
		t.Errorf("Start = %v; want the dead-letter queue that is missing", err)
	}
	if left := server.Queues(); len(left) != 0 {
		t.Errorf("%d queues are left behind", len(left))
	}
}
