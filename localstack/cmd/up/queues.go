package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// queueGuide says where the queues are, and how to send a message. The message is
// for the first queue that a function reads, else for the first one.
func queueGuide(ctx context.Context, w io.Writer, s *stack.Stack, body string) error {
	if len(s.Template().Queues) == 0 {
		return nil
	}
	endpoint, client := s.SQS().Endpoint(), s.SQS().Client()
	var target template.Queue
	var url string
	_, _ = fmt.Fprintf(w, "\nSQS is at %s, with the queues:\n\n", endpoint)
	for i, q := range s.Template().Queues {
		out, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.Name})
		if err != nil {
			return fmt.Errorf("find the queue %s: %w", q.Name, err)
		}
		_, _ = fmt.Fprintf(w, "  %-24s %s\n", q.LogicalID, *out.QueueUrl)
		if i == 0 || isRead(s.Template(), q) && !isRead(s.Template(), target) {
			target, url = q, *out.QueueUrl
		}
	}
	group := ""
	if target.FIFO {
		group = " --message-group-id group-1 --message-deduplication-id message-1"
	}
	_, _ = fmt.Fprintf(w, `
Send a message to %[1]s by the AWS CLI. It wants a Region and credentials; these are made up.

  AWS_DEFAULT_REGION=%[2]s AWS_ACCESS_KEY_ID=%[3]s AWS_SECRET_ACCESS_KEY=%[3]s \
    aws sqs send-message --endpoint-url %[4]s --queue-url %[5]s \
    --message-body '%[6]s'%[7]s
`, target.LogicalID, s.Database().Config().Region, ddblocal.DummyCredential, endpoint, url, cmp.Or(body, `{"order":1}`), group)
	return nil
}

// isRead tells whether a queue is the source of a function.
func isRead(t *template.Template, q template.Queue) bool {
	for _, f := range t.Functions {
		if slices.ContainsFunc(f.Sources, func(s template.Source) bool {
			return s.Table == "" && strings.HasSuffix(s.ARN, ":"+q.Name)
		}) {
			return true
		}
	}
	return false
}
