package queue_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// entries notes the outcome of each entry of a batch.
func (s *script) entries(what string, successful []string, failed []types.BatchResultErrorEntry, err error) {
	s.Helper()
	if err != nil {
		s.fails(what, err)
		return
	}
	line := fmt.Sprintf("%s: %v", what, successful)
	for _, f := range failed {
		line += fmt.Sprintf(" %s=%s %v", *f.Id, *f.Code, f.SenderFault)
	}
	s.see("%s", line)
}

func (s *script) sendBatch(what string, url *string, batch ...types.SendMessageBatchRequestEntry) *sqs.SendMessageBatchOutput {
	s.Helper()
	out, err := s.SendMessageBatch(s.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: batch})
	if err != nil {
		s.fails(what, err)
		return nil
	}
	var ids []string
	for _, e := range out.Successful {
		ids = append(ids, *e.Id)
	}
	s.entries(what, ids, out.Failed, nil)
	return out
}

func (s *script) deleteBatch(what string, url *string, batch ...types.DeleteMessageBatchRequestEntry) {
	s.Helper()
	out, err := s.DeleteMessageBatch(s.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: batch})
	if err != nil {
		s.fails(what, err)
		return
	}
	var ids []string
	for _, e := range out.Successful {
		ids = append(ids, *e.Id)
	}
	s.entries(what, ids, out.Failed, nil)
}

func entry(id, body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{Id: aws.String(id), MessageBody: aws.String(body)}
}

func removal(id string, handle *string) types.DeleteMessageBatchRequestEntry {
	return types.DeleteMessageBatchRequestEntry{Id: aws.String(id), ReceiptHandle: handle}
}

var fifoCases = []conformance{
	{
		name: "batches that are refused as a whole", rule: "SendMessageBatch, DeleteMessageBatch, ChangeMessageVisibilityBatch",
		do: func(s *script) {
			url := s.queue("orders", nil)
			s.sendBatch("empty", url, []types.SendMessageBatchRequestEntry{}...)
			var eleven []types.SendMessageBatchRequestEntry
			for i := range 11 {
				eleven = append(eleven, entry(fmt.Sprint(i), "x"))
			}
			s.sendBatch("eleven", url, eleven...)
			s.sendBatch("same id", url, entry("1", "x"), entry("1", "y"))
			for _, id := range []string{"", "a.b", strings.Repeat("x", 81)} {
				s.sendBatch("bad id", url, entry(id, "x"))
			}
			s.sendBatch("long id", url, entry(strings.Repeat("x", 78)+"_-", "x"))
			s.deleteBatch("delete same id", url, removal("1", aws.String("a")), removal("1", aws.String("b")))
			s.deleteBatch("delete bad id", url, removal("a:b", aws.String("a")))
			_, err := s.ChangeMessageVisibilityBatch(s.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{}})
			s.fails("change empty", err)
		},
		want: []string{
			"empty: AWS.SimpleQueueService.EmptyBatchRequest Bad Request EmptyBatchRequest",
			"eleven: AWS.SimpleQueueService.TooManyEntriesInBatchRequest Bad Request TooManyEntriesInBatchRequest",
			"same id: AWS.SimpleQueueService.BatchEntryIdsNotDistinct Bad Request BatchEntryIdsNotDistinct",
			"bad id: AWS.SimpleQueueService.InvalidBatchEntryId Bad Request InvalidBatchEntryId",
			"bad id: AWS.SimpleQueueService.InvalidBatchEntryId Bad Request InvalidBatchEntryId",
			"bad id: AWS.SimpleQueueService.InvalidBatchEntryId Bad Request InvalidBatchEntryId",
			"long id: [" + strings.Repeat("x", 78) + "_-]",
			"delete same id: AWS.SimpleQueueService.BatchEntryIdsNotDistinct Bad Request BatchEntryIdsNotDistinct",
			"delete bad id: AWS.SimpleQueueService.InvalidBatchEntryId Bad Request InvalidBatchEntryId",
			"change empty: AWS.SimpleQueueService.EmptyBatchRequest Bad Request EmptyBatchRequest",
		},
	},
	{
		name: "batches whose entries fail one by one", rule: "SendMessageBatch, DeleteMessageBatch, ChangeMessageVisibilityBatch",
		do: func(s *script) {
			url := s.queue("orders", nil)
			out := s.sendBatch("send", url, entry("a", "x"), entry("b", "\x00"), entry("c", "y"))
			if out != nil && len(out.Successful) == 2 {
				s.see("MD5: %s", *out.Successful[1].MD5OfMessageBody)
			}
			got := s.receive(url, 10)
			s.see("received: %s", texts(got))
			change := func(id string, handle *string, seconds int32) types.ChangeMessageVisibilityBatchRequestEntry {
				return types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(id), ReceiptHandle: handle, VisibilityTimeout: seconds}
			}
			changed, err := s.ChangeMessageVisibilityBatch(s.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				change("a", got[0].ReceiptHandle, 60), change("b", aws.String("nonsense"), 60), change("c", got[len(got)-1].ReceiptHandle, 43201),
			}})
			if err != nil {
				s.fails("change", err)
			} else {
				var ids []string
				for _, e := range changed.Successful {
					ids = append(ids, *e.Id)
				}
				s.entries("change", ids, changed.Failed, nil)
			}
			s.deleteBatch("delete", url, removal("a", got[0].ReceiptHandle), removal("b", aws.String("nonsense")))
		},
		want: []string{
			"send: [a c] b=InvalidMessageContents true", "MD5: 415290769594460e2e485922904f345d", "received: x y",
			"change: [a] b=ReceiptHandleIsInvalid true c=InvalidParameterValue true",
			"delete: [a] b=ReceiptHandleIsInvalid true",
		},
	},
	{
		name: "FIFO: groups in order", rule: "FIFO queue delivery logic in Amazon SQS",
		do: func(s *script) {
			url := s.fifo("orders")
			s.send(url, "a", "a1", "a2", "a3")
			s.send(url, "b", "b1")
			got := s.receive(url, 1)
			s.see("first: %s", texts(got))
			s.see("while a1 is in flight: %s", texts(s.receive(url, 10)))
			_, err := s.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: got[0].ReceiptHandle})
			s.fails("delete", err)
			got = s.receive(url, 10)
			s.see("then: %s", texts(got))
			for _, m := range got {
				_, err := s.ChangeMessageVisibility(s.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle})
				s.fails("give back", err)
			}
			got = s.receive(url, 10)
			s.see("again: %s", texts(got))
			s.see("%s %d %d", got[0].Attributes["MessageGroupId"], len(got[0].Attributes["SequenceNumber"]), len(got[0].Attributes["MessageDeduplicationId"]))
		},
		want: []string{
			"first: a1", "while a1 is in flight: b1", "delete: ok", "then: a2 a3", "give back: ok", "give back: ok", "again: a2 a3", "a 20 64",
		},
	},
	{
		name: "FIFO: duplicates", rule: "Using the message deduplication ID in Amazon SQS",
		do: func(s *script) {
			url := s.fifo("orders")
			sent := s.send(url, "a", "x", "x")
			s.see("same id: %v, same sequence: %v", *sent[0].MessageId == *sent[1].MessageId, aws.ToString(sent[0].SequenceNumber) == aws.ToString(sent[1].SequenceNumber))
			s.send(url, "b", "x")
			got := s.receive(url, 10)
			s.see("received: %s", texts(got))
			_, err := s.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: got[0].ReceiptHandle})
			s.fails("delete", err)
			s.send(url, "a", "x")
			s.see("after the delete: %q", texts(s.receive(url, 10)))
			out := s.sendBatch("batch", url,
				types.SendMessageBatchRequestEntry{Id: aws.String("1"), MessageBody: aws.String("y"), MessageGroupId: aws.String("a")},
				types.SendMessageBatchRequestEntry{Id: aws.String("2"), MessageBody: aws.String("y"), MessageGroupId: aws.String("a")})
			s.see("in one batch: %v", *out.Successful[0].MessageId == *out.Successful[1].MessageId)
			s.see("received: %s", texts(s.receive(url, 10)))
		},
		want: []string{
			"same id: true, same sequence: true", "received: x", "delete: ok", `after the delete: ""`,
			"batch: [1 2]", "in one batch: true", "received: y",
		},
	},
	{
		name: "FIFO: what a message needs", rule: "SendMessage; recorded of AWS by LocalStack's validated tests",
		do: func(s *script) {
			url := s.queue("orders.fifo", map[string]string{"FifoQueue": "true"})
			try := func(what string, in sqs.SendMessageInput) {
				in.QueueUrl, in.MessageBody = url, aws.String("x")
				_, err := s.SendMessage(s.Context(), &in)
				s.fails(what, err)
			}
			try("no group", sqs.SendMessageInput{MessageDeduplicationId: aws.String("1")})
			try("no deduplication id", sqs.SendMessageInput{MessageGroupId: aws.String("a")})
			try("own delay", sqs.SendMessageInput{MessageGroupId: aws.String("a"), MessageDeduplicationId: aws.String("1"), DelaySeconds: 2})
			try("long deduplication id", sqs.SendMessageInput{MessageGroupId: aws.String("a"), MessageDeduplicationId: aws.String(strings.Repeat("1", 129))})
			try("both", sqs.SendMessageInput{MessageGroupId: aws.String("a"), MessageDeduplicationId: aws.String(strings.Repeat("~", 128))})
			s.sendBatch("batch without group", url, entry("1", "x"))
			_, err := s.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.prefix + "standard"), Attributes: map[string]string{"ContentBasedDeduplication": "true"}})
			s.fails("content-based standard queue", err)
		},
		want: []string{
			"no group: MissingParameter Bad Request", "no deduplication id: InvalidParameterValue Bad Request",
			"own delay: InvalidParameterValue Bad Request", "long deduplication id: InvalidParameterValue Bad Request", "both: ok",
			"batch without group: InvalidParameterValue Bad Request",
			"content-based standard queue: InvalidAttributeName Bad Request InvalidAttributeName",
		},
	},
	{
		name: "FIFO: expired receipt handles", rule: "ReceiveMessage, ReceiveRequestAttemptId; recorded of AWS by LocalStack's validated tests",
		do: func(s *script) {
			url := s.queue("orders.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "1"})
			s.send(url, "a", "x")
			got := s.receive(url, 1)
			s.pass(1100 * time.Millisecond)
			_, err := s.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: got[0].ReceiptHandle})
			s.fails("delete", err)
			s.deleteBatch("in a batch", url, removal("1", got[0].ReceiptHandle))
			s.see("still there: %s", texts(s.receive(url, 1)))
		},
		want: []string{"delete: InvalidParameterValue Bad Request", "in a batch: [] 1=ReceiptHandleIsInvalid true", "still there: x"},
	},
}
