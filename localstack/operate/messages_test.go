package operate_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// messageFails checks the page's section about a message that fails on every attempt, here
// because the message names no payment. The page's commands find the failure in the log, and
// count the messages in the dead-letter queue.
func (w *world) messageFails(t *testing.T) {
	for _, queue := range []string{"NotificationsQueue", "NotificationsDeadQueue"} {
		w.sendMessage(t, w.queue(t, queue), "{}")
	}
	r := w.read(t, "Messages fail again and again")
	r.shell.await("grep 'a message failed' "+logFile, `"id"`, 1)
	for _, line := range w.find(t, savedQuery(t, "failed messages")) {
		if line["error"] == nil || line["id"] == nil {
			t.Errorf("the query finds %v", line)
		}
	}
	if counted := r.block(); !strings.Contains(counted, `"ApproximateNumberOfMessages": "1"`) {
		t.Errorf("the message is not counted: %s", counted)
	}
	if arn := r.shell.must(`echo "$DLQ_ARN"`); !strings.HasPrefix(arn, "arn:aws:sqs:") {
		t.Errorf("the queue has the ARN %s", arn)
	}
}

func (w *world) sendMessage(t *testing.T, queue, body string) {
	t.Helper()
	client := w.stack.SQS().Client()
	found, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &queue})
	if err == nil {
		_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: found.QueueUrl, MessageBody: &body,
			MessageGroupId: aws.String("by-hand"), MessageDeduplicationId: aws.String("by-hand"),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}
