package queue_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var queueCases = []conformance{
	{
		name: "CreateQueue is idempotent", rule: "CreateQueue",
		do: func(s *script) {
			attributes := map[string]string{"VisibilityTimeout": "69"}
			first := s.queue("orders", attributes)
			s.see("same: %v", *s.queue("orders", attributes) == *first)
			attributes["VisibilityTimeout"] = "70"
			_, err := s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.prefix + "orders"), Attributes: attributes})
			s.fails("other value", err)
			_, err = s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.prefix + "orders"), Attributes: map[string]string{"DelaySeconds": "1"}})
			s.fails("other attribute", err)
		},
		want: []string{
			"same: true",
			"other value: QueueAlreadyExists Bad Request QueueNameExists",
			"other attribute: QueueAlreadyExists Bad Request QueueNameExists",
		},
	},
	{
		name: "CreateQueue refuses names", rule: "CreateQueue, QueueName",
		do: func(s *script) {
			for _, name := range []string{"", "a b", strings.Repeat("a", 81), "a.fifo", "ä"} {
				_, err := s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name)})
				s.fails("standard", err)
			}
			for _, name := range []string{"a", strings.Repeat("a", 76) + ".fifo", ".fifo"} {
				_, err := s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: map[string]string{"FifoQueue": "true"}})
				s.fails("FIFO", err)
			}
		},
		want: []string{
			"standard: MissingParameter Bad Request",
			"standard: InvalidParameterValue Bad Request",
			"standard: InvalidParameterValue Bad Request",
			"standard: InvalidParameterValue Bad Request",
			"standard: InvalidParameterValue Bad Request",
			"FIFO: InvalidParameterValue Bad Request",
			"FIFO: InvalidParameterValue Bad Request",
			"FIFO: InvalidParameterValue Bad Request",
		},
	},
	{
		name: "default attributes", rule: "CreateQueue, Attributes",
		do: func(s *script) {
			for _, url := range []*string{s.queue("orders", nil), s.queue("orders.fifo", map[string]string{"FifoQueue": "true"})} {
				all := s.attributes(url, types.QueueAttributeNameAll)
				s.see("created %v", all["CreatedTimestamp"] == all["LastModifiedTimestamp"])
				delete(all, "CreatedTimestamp")
				delete(all, "LastModifiedTimestamp")
				all["QueueArn"] = all["QueueArn"][strings.LastIndex(all["QueueArn"], ":"):]
				for _, name := range slices.Sorted(maps.Keys(all)) {
					s.see("%s=%s", name, all[name])
				}
			}
		},
		want: slices.Concat([]string{"created true"}, attributesOfStandard, []string{"created true"}, attributesOfFIFO),
	},
	{
		name: "attributes by name", rule: "GetQueueAttributes",
		do: func(s *script) {
			url := s.queue("orders", nil)
			s.see("none: %d", len(s.attributes(url)))
			s.see("two: %v", s.attributes(url, "VisibilityTimeout", "DelaySeconds", "RedrivePolicy", "Policy"))
			_, err := s.GetQueueAttributes(s.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{"Colour"}})
			s.fails("unknown", err)
			_, err = s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"Colour": "red"}})
			s.fails("set unknown", err)
			_, err = s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"FifoQueue": "true"}})
			s.fails("set FifoQueue", err)
			_, err = s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"VisibilityTimeout": "43201"}})
			s.fails("out of range", err)
			fifo := s.fifo("orders")
			_, err = s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: fifo, Attributes: map[string]string{"FifoQueue": "false"}})
			s.fails("no longer FIFO", err)
		},
		want: []string{
			"none: 0",
			"two: map[DelaySeconds:0 VisibilityTimeout:30]",
			"unknown: InvalidAttributeName Bad Request InvalidAttributeName",
			"set unknown: InvalidAttributeName Bad Request InvalidAttributeName",
			"set FifoQueue: InvalidAttributeName Bad Request InvalidAttributeName",
			"out of range: InvalidAttributeValue Bad Request InvalidAttributeValue",
			"no longer FIFO: InvalidAttributeValue Bad Request InvalidAttributeValue",
		},
	},
	{
		name: "redrive policies", rule: "Using dead-letter queues in Amazon SQS",
		do: func(s *script) {
			dead, fifo := s.arn(s.queue("dead", nil)), s.arn(s.fifo("dead"))
			url := s.queue("orders", nil)
			for _, policy := range []string{
				`{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":3}`,
				`{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":"3"}`,
				`{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":0}`,
				`{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":1001}`,
				`{"deadLetterTargetArn":"` + dead + `x","maxReceiveCount":3}`,
				`{"deadLetterTargetArn":"` + fifo + `","maxReceiveCount":3}`,
				`{"deadLetterTargetArn":"dead","maxReceiveCount":3}`,
				`{"maxReceiveCount":3}`,
				`three`,
			} {
				_, err := s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"RedrivePolicy": policy}})
				s.fails("set", err)
			}
			policy := s.attributes(url, "RedrivePolicy")["RedrivePolicy"]
			s.see("kept: %v", strings.Contains(policy, dead) && strings.Contains(policy, "maxReceiveCount"))
			_, err := s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"RedrivePolicy": ""}})
			s.fails("taken away", err)
			s.see("left: %d", len(s.attributes(url, "RedrivePolicy")))
		},
		want: []string{
			"set: ok",
			"set: ok",
			"set: InvalidParameterValue Bad Request",
			"set: InvalidParameterValue Bad Request",
			"set: InvalidParameterValue Bad Request",
			"set: InvalidParameterValue Bad Request",
			"set: InvalidParameterValue Bad Request",
			"set: InvalidParameterValue Bad Request",
			"set: InvalidParameterValue Bad Request",
			"kept: true",
			"taken away: ok",
			"left: 0",
		},
	},
	{
		name: "no such queue", rule: "QueueDoesNotExist of every action",
		do: func(s *script) {
			url := aws.String(strings.TrimSuffix(*s.queue("orders", nil), "orders") + "nowhere")
			id := aws.String("1")
			_, err := s.GetQueueUrl(s.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("nowhere")})
			s.fails("GetQueueUrl", err)
			_, err = s.SendMessage(s.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x")})
			s.fails("SendMessage", err)
			_, err = s.SendMessageBatch(s.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{{Id: id, MessageBody: aws.String("x")}}})
			s.fails("SendMessageBatch", err)
			_, err = s.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{QueueUrl: url})
			s.fails("ReceiveMessage", err)
			_, err = s.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: id})
			s.fails("DeleteMessage", err)
			_, err = s.ChangeMessageVisibility(s.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: id})
			s.fails("ChangeMessageVisibility", err)
			_, err = s.PurgeQueue(s.Context(), &sqs.PurgeQueueInput{QueueUrl: url})
			s.fails("PurgeQueue", err)
			_, err = s.DeleteQueue(s.Context(), &sqs.DeleteQueueInput{QueueUrl: url})
			s.fails("DeleteQueue", err)
			_, err = s.GetQueueAttributes(s.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url})
			s.fails("GetQueueAttributes", err)
			_, err = s.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{"DelaySeconds": "1"}})
			s.fails("SetQueueAttributes", err)
		},
		want: []string{
			"GetQueueUrl: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"SendMessage: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"SendMessageBatch: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"ReceiveMessage: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"DeleteMessage: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"ChangeMessageVisibility: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"PurgeQueue: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"DeleteQueue: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"GetQueueAttributes: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
			"SetQueueAttributes: AWS.SimpleQueueService.NonExistentQueue Bad Request QueueDoesNotExist",
		},
	},
	{
		name: "ListQueues pages", rule: "ListQueues",
		do: func(s *script) {
			for _, name := range []string{"c", "a", "b", "other"} {
				s.queue("list-"+name, nil)
			}
			in := &sqs.ListQueuesInput{QueueNamePrefix: aws.String(s.prefix + "list-"), MaxResults: aws.Int32(3)}
			for {
				out, err := s.ListQueues(s.Context(), in)
				if err != nil {
					s.Fatal(err)
				}
				var names []string
				for _, url := range out.QueueUrls {
					names = append(names, url[strings.LastIndex(url, "/")+1:])
				}
				s.see("%v, more: %v", names, out.NextToken != nil)
				if in.NextToken = out.NextToken; out.NextToken == nil {
					break
				}
			}
			out, err := s.ListQueues(s.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("nowhere")})
			s.see("none: %v %v", out.QueueUrls, err)
		},
		want: []string{"[list-a list-b list-c], more: true", "[list-other], more: false", "none: [] <nil>"},
	},
	{
		name: "PurgeQueue twice", rule: "PurgeQueue, PurgeQueueInProgress",
		do: func(s *script) {
			url := s.queue("orders", nil)
			s.send(url, "", "1", "2")
			_, err := s.PurgeQueue(s.Context(), &sqs.PurgeQueueInput{QueueUrl: url})
			s.fails("first", err)
			s.see("left: %q", texts(s.receive(url, 10)))
			_, err = s.PurgeQueue(s.Context(), &sqs.PurgeQueueInput{QueueUrl: url})
			s.fails("second", err)
		},
		want: []string{"first: ok", `left: ""`, "second: AWS.SimpleQueueService.PurgeQueueInProgress Forbidden PurgeQueueInProgress"},
	},
	{
		name: "DeleteQueue and its name", rule: "DeleteQueue, QueueDeletedRecently",
		do: func(s *script) {
			url := s.queue("orders", nil)
			_, err := s.DeleteQueue(s.Context(), &sqs.DeleteQueueInput{QueueUrl: url})
			s.fails("delete", err)
			_, err = s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.prefix + "orders")})
			s.fails("create at once", err)
		},
		want: []string{"delete: ok", "create at once: AWS.SimpleQueueService.QueueDeletedRecently Bad Request QueueDeletedRecently"},
	},
	{
		name: "StartMessageMoveTask", rule: "StartMessageMoveTask, ListMessageMoveTasks",
		do: func(s *script) {
			dead := s.queue("dead", nil)
			url := s.queue("orders", map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn(dead) + `","maxReceiveCount":1}`})
			sent := s.send(url, "", "x")
			s.see("received: %q", texts(s.receive(url, 1)))
			s.pass(1100 * time.Millisecond)
			s.see("moved: %q", texts(s.receive(url, 1)))
			started, err := s.StartMessageMoveTask(s.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(s.arn(dead))})
			s.fails("start", err)
			if err == nil {
				s.see("handle: %v", aws.ToString(started.TaskHandle) != "")
				tasks, err := s.ListMessageMoveTasks(s.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(s.arn(dead))})
				s.fails("list", err)
				for _, task := range tasks.Results {
					s.see("%s %d of %d", aws.ToString(task.Status), task.ApproximateNumberOfMessagesMoved, aws.ToInt64(task.ApproximateNumberOfMessagesToMove))
				}
				for _, m := range s.receive(url, 1) {
					s.see("back: %s, new id: %v, receives: %s", *m.Body, *m.MessageId != *sent[0].MessageId, m.Attributes["ApproximateReceiveCount"])
				}
			}
			_, err = s.StartMessageMoveTask(s.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(s.arn(url))})
			s.fails("no dead-letter queue", err)
			_, err = s.StartMessageMoveTask(s.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(s.arn(dead) + "x")})
			s.fails("no such source", err)
			_, err = s.StartMessageMoveTask(s.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(s.arn(dead)), DestinationArn: aws.String(s.arn(dead) + "x")})
			s.fails("no such destination", err)
			_, err = s.StartMessageMoveTask(s.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(s.arn(dead)), MaxNumberOfMessagesPerSecond: aws.Int32(501)})
			s.fails("too fast", err)
			_, err = s.ListMessageMoveTasks(s.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(s.arn(dead)), MaxResults: aws.Int32(11)})
			s.fails("too many tasks", err)
		},
		want: []string{
			`received: "x"`, `moved: ""`, "start: ok", "handle: true", "list: ok", "COMPLETED 1 of 1",
			"back: x, new id: true, receives: 1",
			"no dead-letter queue: InvalidParameterValue Bad Request",
			"no such source: ResourceNotFoundException Not Found ResourceNotFoundException",
			"no such destination: ResourceNotFoundException Not Found ResourceNotFoundException",
			"too fast: InvalidParameterValue Bad Request",
			"too many tasks: InvalidParameterValue Bad Request",
		},
	},
}

var attributesOfStandard = []string{
	"ApproximateNumberOfMessages=0", "ApproximateNumberOfMessagesDelayed=0", "ApproximateNumberOfMessagesNotVisible=0",
	"DelaySeconds=0", "MaximumMessageSize=1048576", "MessageRetentionPeriod=345600", "QueueArn=:orders",
	"ReceiveMessageWaitTimeSeconds=0", "SqsManagedSseEnabled=true", "VisibilityTimeout=30",
}

var attributesOfFIFO = []string{
	"ApproximateNumberOfMessages=0", "ApproximateNumberOfMessagesDelayed=0", "ApproximateNumberOfMessagesNotVisible=0",
	"ContentBasedDeduplication=false", "DeduplicationScope=queue", "DelaySeconds=0", "FifoQueue=true", "FifoThroughputLimit=perQueue",
	"MaximumMessageSize=1048576", "MessageRetentionPeriod=345600", "QueueArn=:orders.fifo",
	"ReceiveMessageWaitTimeSeconds=0", "SqsManagedSseEnabled=true", "VisibilityTimeout=30",
}
