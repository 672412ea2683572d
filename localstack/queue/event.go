package queue

import (
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Event is the message as a record of the event that Lambda invokes a function
// with ("Using Lambda with Amazon SQS").
func (m Message) Event() events.SQSMessage {
	record := events.SQSMessage{
		MessageId:              m.ID,
		ReceiptHandle:          m.ReceiptHandle,
		Body:                   m.Body,
		Md5OfBody:              m.MD5OfBody,
		Md5OfMessageAttributes: m.MD5OfAttributes,
		Attributes:             m.System,
		MessageAttributes:      map[string]events.SQSMessageAttribute{},
		EventSourceARN:         m.QueueARN,
		EventSource:            "aws:sqs",
		AWSRegion:              region(m.QueueARN),
	}
	for name, a := range m.Attributes {
		attribute := events.SQSMessageAttribute{
			BinaryValue:      a.BinaryValue,
			StringListValues: []string{}, // "Not implemented. Reserved for future use."
			BinaryListValues: [][]byte{},
			DataType:         a.DataType,
		}
		if a.BinaryValue == nil {
			attribute.StringValue = &a.StringValue
		}
		record.MessageAttributes[name] = attribute
	}
	return record
}

// region is the fourth part of an ARN.
func region(arn string) string {
	parts := strings.SplitN(arn, ":", 5)
	if len(parts) < 5 {
		return ""
	}
	return parts[3]
}
