package queue_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func text(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
}

var messageCases = []conformance{
	{
		name: "a message comes as it was sent", rule: "SendMessage, ReceiveMessage",
		do: func(s *script) {
			url := s.queue("orders", nil)
			sent, err := s.SendMessage(s.Context(), &sqs.SendMessageInput{
				QueueUrl: url, MessageBody: aws.String("{\"n\":1}\t<ü>😀"),
				MessageAttributes: map[string]types.MessageAttributeValue{
					"Text": text("ü"), "N.o_1-x": {DataType: aws.String("Number.int"), StringValue: aws.String("-1.5e3")},
					"Raw": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
				},
				MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
					"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
				},
			})
			if err != nil {
				s.Fatal(err)
			}
			m := s.receive(url, 10)[0]
			s.see("id: %v", *m.MessageId == *sent.MessageId && len(*m.MessageId) == 36)
			s.see("body: %s", *m.Body)
			s.see("MD5: %v", *m.MD5OfBody == *sent.MD5OfMessageBody)
			s.see("MD5 of attributes: %v", *m.MD5OfMessageAttributes == *sent.MD5OfMessageAttributes)
			s.see("MD5 of system attributes: %d", len(aws.ToString(sent.MD5OfMessageSystemAttributes)))
			s.see("%s %s", *m.MessageAttributes["Text"].StringValue, *m.MessageAttributes["Text"].DataType)
			s.see("%s %s", *m.MessageAttributes["N.o_1-x"].StringValue, *m.MessageAttributes["N.o_1-x"].DataType)
			s.see("%v %s", m.MessageAttributes["Raw"].BinaryValue, *m.MessageAttributes["Raw"].DataType)
			s.see("receives: %s", m.Attributes["ApproximateReceiveCount"])
			for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
				at, err := strconv.ParseInt(m.Attributes[name], 10, 64)
				s.see("now: %v", err == nil && time.Since(time.UnixMilli(at)).Abs() < 10*time.Second)
			}
			s.see("trace: %s", m.Attributes["AWSTraceHeader"])
			s.see("sender: %v", m.Attributes["SenderId"] != "")
			s.see("attributes: %d", len(m.Attributes))
		},
		want: []string{
			"id: true", "body: {\"n\":1}\t<ü>😀", "MD5: true", "MD5 of attributes: true", "MD5 of system attributes: 32",
			"ü String", "-1.5e3 Number.int", "[0 255] Binary", "receives: 1", "now: true", "now: true",
			"trace: Root=1-5759e988-bd862e3fe1be46a994272793", "sender: true", "attributes: 5",
		},
	},
	{
		// The digests are those of AWS itself, as LocalStack's validated tests
		// recorded them.
		name: "message attributes by name, and their MD5", rule: "ReceiveMessage, MessageAttributeNames",
		do: func(s *script) {
			url := s.queue("orders", map[string]string{"VisibilityTimeout": "0"})
			sent, err := s.SendMessage(s.Context(), &sqs.SendMessageInput{
				QueueUrl: url, MessageBody: aws.String("msg"),
				MessageAttributes: map[string]types.MessageAttributeValue{"Hello": text("There"), "General": text("Kenobi"), "Help.Me": text("Me")},
			})
			if err != nil {
				s.Fatal(err)
			}
			s.see("sent %s", *sent.MD5OfMessageAttributes)
			for _, names := range [][]string{nil, {"All"}, {".*"}, {"Hel.*"}, {"Hello", "General"}, {"Hello", "Nowhere"}, {"Nowhere"}, {"hello"}} {
				out, err := s.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MessageAttributeNames: names})
				if err != nil {
					s.Fatal(err)
				}
				m := out.Messages[0]
				s.see("%v: %d %s, system: %d", names, len(m.MessageAttributes), aws.ToString(m.MD5OfMessageAttributes), len(m.Attributes))
			}
			out, err := s.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{
				QueueUrl: url, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"SentTimestamp"},
				AttributeNames: []types.QueueAttributeName{"ApproximateReceiveCount"}, //nolint:staticcheck // old clients send it
			})
			if err != nil {
				s.Fatal(err)
			}
			s.see("of two: %d, receives: %s", len(out.Messages[0].Attributes), out.Messages[0].Attributes["ApproximateReceiveCount"])
		},
		want: []string{
			"sent 4c360f3fdafd970e05fae2f149d997f5",
			"[]: 0 , system: 0",
			"[All]: 3 4c360f3fdafd970e05fae2f149d997f5, system: 0",
			"[.*]: 3 4c360f3fdafd970e05fae2f149d997f5, system: 0",
			"[Hel.*]: 2 83fee93c1bcd8b9a5a923ffacdc636c7, system: 0",
			"[Hello General]: 2 fca026605781cb4126a1e9044df24232, system: 0",
			"[Hello Nowhere]: 1 a311262e065454b75da111d535b8dacd, system: 0",
			"[Nowhere]: 0 , system: 0",
			"[hello]: 0 , system: 0",
			"of two: 2, receives: 9",
		},
	},
	{
		name: "the MD5 of a binary attribute", rule: "Calculating the MD5 message digest for message attributes",
		do: func(s *script) {
			sent, err := s.SendMessage(s.Context(), &sqs.SendMessageInput{
				QueueUrl: s.queue("orders", nil), MessageBody: aws.String("test"),
				MessageAttributes: map[string]types.MessageAttributeValue{"attr1": {
					DataType: aws.String("Binary"), BinaryValue: []byte("traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"),
				}},
			})
			if err != nil {
				s.Fatal(err)
			}
			s.see("%s", *sent.MD5OfMessageAttributes)
		},
		want: []string{"8cbe4db156db8a94db8b801b7addb984"},
	},
	{
		name: "SendMessage refuses", rule: "SendMessage; Amazon SQS message metadata",
		do: func(s *script) {
			url := s.queue("orders", nil)
			try := func(what string, change func(in *sqs.SendMessageInput)) {
				in := &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{}}
				change(in)
				_, err := s.SendMessage(s.Context(), in)
				s.fails(what, err)
			}
			try("empty body", func(in *sqs.SendMessageInput) { in.MessageBody = aws.String("") })
			for _, r := range "\x00\x0b\x1f\ufffe\uffff" {
				try(fmt.Sprintf("%U", r), func(in *sqs.SendMessageInput) { in.MessageBody = aws.String("x" + string(r)) })
			}
			for _, r := range "\t\n\r\x20\x7f\ud7ff\ue000\ufffd\U00010000\U0010ffff" {
				try(fmt.Sprintf("%U", r), func(in *sqs.SendMessageInput) { in.MessageBody = aws.String("x" + string(r)) })
			}
			for _, name := range []string{"aws.x", "Amazon.x", ".x", "x.", "x..y", "x y", strings.Repeat("x", 257)} {
				try("name "+name[:min(8, len(name))], func(in *sqs.SendMessageInput) { in.MessageAttributes[name] = text("y") })
			}
			for _, a := range []types.MessageAttributeValue{
				text(""), {DataType: aws.String("Text"), StringValue: aws.String("x")}, {DataType: aws.String("Binary")},
				{DataType: aws.String("Number"), StringValue: aws.String("one")},
			} {
				try("value "+*a.DataType, func(in *sqs.SendMessageInput) { in.MessageAttributes["a"] = a })
			}
			try("eleven", func(in *sqs.SendMessageInput) {
				for i := range 11 {
					in.MessageAttributes[fmt.Sprint("a", i)] = text("x")
				}
			})
			try("ten", func(in *sqs.SendMessageInput) {
				for i := range 10 {
					in.MessageAttributes[fmt.Sprint("a", i)] = text("x")
				}
			})
			try("delay", func(in *sqs.SendMessageInput) { in.DelaySeconds = 901 })
			try("deduplication", func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String("x") })
			try("group", func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String("fair") })
			try("long group", func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String(strings.Repeat("x", 129)) })
		},
		want: []string{
			"empty body: MissingParameter Bad Request",
			"U+0000: InvalidMessageContents Bad Request InvalidMessageContents",
			"U+000B: InvalidMessageContents Bad Request InvalidMessageContents",
			"U+001F: InvalidMessageContents Bad Request InvalidMessageContents",
			"U+FFFE: InvalidMessageContents Bad Request InvalidMessageContents",
			"U+FFFF: InvalidMessageContents Bad Request InvalidMessageContents",
			"U+0009: ok", "U+000A: ok", "U+000D: ok", "U+0020: ok", "U+007F: ok", "U+D7FF: ok", "U+E000: ok", "U+FFFD: ok", "U+10000: ok", "U+10FFFF: ok",
			"name aws.x: InvalidParameterValue Bad Request", "name Amazon.x: InvalidParameterValue Bad Request",
			"name .x: InvalidParameterValue Bad Request", "name x.: InvalidParameterValue Bad Request",
			"name x..y: InvalidParameterValue Bad Request", "name x y: InvalidParameterValue Bad Request",
			"name xxxxxxxx: InvalidParameterValue Bad Request",
			"value String: InvalidParameterValue Bad Request", "value Text: InvalidParameterValue Bad Request",
			"value Binary: InvalidParameterValue Bad Request", "value Number: InvalidParameterValue Bad Request",
			"eleven: InvalidParameterValue Bad Request", "ten: ok",
			"delay: InvalidParameterValue Bad Request", "deduplication: InvalidParameterValue Bad Request",
			"group: ok", "long group: InvalidParameterValue Bad Request",
		},
	},
	{
		name: "sizes", rule: "Amazon SQS message quotas: 1 MiB",
		do: func(s *script) {
			url, small := s.queue("orders", nil), s.queue("small", map[string]string{"MaximumMessageSize": "1024"})
			try := func(what string, url *string, size int, attributes map[string]types.MessageAttributeValue) {
				_, err := s.SendMessage(s.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String(strings.Repeat("x", size)), MessageAttributes: attributes})
				s.fails(what, err)
			}
			try("1 MiB", url, 1<<20, nil)
			try("a byte more", url, 1<<20+1, nil)
			try("1 KiB", small, 1024, nil)
			try("a byte more", small, 1025, nil)
			attribute := map[string]types.MessageAttributeValue{"ab": text("c")} // 2 + 6 + 1 bytes
			try("with an attribute", small, 1024-9, attribute)
			try("a byte more", small, 1024-8, attribute)
			half := aws.String(strings.Repeat("x", 1<<19))
			batch := []types.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: half}, {Id: aws.String("2"), MessageBody: half}}
			_, err := s.SendMessageBatch(s.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: batch})
			s.fails("batch of 1 MiB", err)
			batch[0].MessageBody = aws.String(*half + "x")
			_, err = s.SendMessageBatch(s.Context(), &sqs.SendMessageBatchInput{QueueUrl: url, Entries: batch})
			s.fails("a byte more", err)
		},
		want: []string{
			"1 MiB: ok", "a byte more: InvalidParameterValue Bad Request",
			"1 KiB: ok", "a byte more: InvalidParameterValue Bad Request",
			"with an attribute: ok", "a byte more: InvalidParameterValue Bad Request",
			"batch of 1 MiB: ok", "a byte more: AWS.SimpleQueueService.BatchRequestTooLong Bad Request BatchRequestTooLong",
		},
	},
	{
		name: "visibility and handles", rule: "DeleteMessage, ChangeMessageVisibility",
		do: func(s *script) {
			url := s.queue("orders", map[string]string{"VisibilityTimeout": "1"})
			s.send(url, "", "x")
			first := s.receive(url, 1)[0]
			s.see("hidden: %q", texts(s.receive(url, 1)))
			s.pass(1100 * time.Millisecond)
			second := s.receive(url, 1)[0]
			s.see("again: %s, receives: %s, new handle: %v", *second.Body, second.Attributes["ApproximateReceiveCount"], *second.ReceiptHandle != *first.ReceiptHandle)
			remove := func(what string, handle *string) {
				_, err := s.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: handle})
				s.fails(what, err)
			}
			hide := func(what string, handle *string, seconds int32) {
				_, err := s.ChangeMessageVisibility(s.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: handle, VisibilityTimeout: seconds})
				s.fails(what, err)
			}
			hide("extend", second.ReceiptHandle, 60)
			hide("over 12 hours", second.ReceiptHandle, 43201)
			remove("old handle", first.ReceiptHandle)
			s.see("in flight: %s", s.attributes(url, "ApproximateNumberOfMessagesNotVisible")["ApproximateNumberOfMessagesNotVisible"])
			hide("give back", second.ReceiptHandle, 0)
			s.see("visible: %s", s.attributes(url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
			hide("not in flight", second.ReceiptHandle, 1)
			remove("visible again, not received again", second.ReceiptHandle)
			s.see("left: %s", s.attributes(url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
			remove("twice", second.ReceiptHandle)
			hide("deleted", second.ReceiptHandle, 1)
			remove("nonsense", aws.String("nonsense"))
			hide("nonsense", aws.String("nonsense"), 1)
		},
		want: []string{
			`hidden: ""`, "again: x, receives: 2, new handle: true",
			"extend: ok", "over 12 hours: InvalidParameterValue Bad Request",
			"old handle: ok", "in flight: 1", "give back: ok", "visible: 1",
			"not in flight: AWS.SimpleQueueService.MessageNotInflight Bad Request MessageNotInflight",
			"visible again, not received again: ok", "left: 0", "twice: ok",
			"deleted: InvalidParameterValue Bad Request",
			"nonsense: ReceiptHandleIsInvalid Not Found ReceiptHandleIsInvalid",
			"nonsense: ReceiptHandleIsInvalid Not Found ReceiptHandleIsInvalid",
		},
	},
	{
		name: "ReceiveMessage refuses", rule: "ReceiveMessage",
		do: func(s *script) {
			url := s.queue("orders", nil)
			for _, in := range []sqs.ReceiveMessageInput{{MaxNumberOfMessages: 11}, {MaxNumberOfMessages: -1}, {WaitTimeSeconds: 21}, {VisibilityTimeout: 43201}} {
				in.QueueUrl = url
				_, err := s.ReceiveMessage(s.Context(), &in)
				s.fails("receive", err)
			}
		},
		want: []string{
			"receive: InvalidParameterValue Bad Request", "receive: InvalidParameterValue Bad Request",
			"receive: InvalidParameterValue Bad Request", "receive: InvalidParameterValue Bad Request",
		},
	},
	{
		name: "a send wakes a waiting receive", rule: "Amazon SQS short and long polling",
		do: func(s *script) {
			url := s.queue("orders", nil)
			sent := make(chan struct{})
			time.AfterFunc(time.Second, func() { s.send(url, "", "x"); close(sent) })
			start := time.Now()
			out, err := s.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20})
			if err != nil {
				s.Fatal(err)
			}
			<-sent
			s.see("%s, soon: %v", texts(out.Messages), time.Since(start) < 3*time.Second)
		},
		want: []string{"x, soon: true"},
	},
}
