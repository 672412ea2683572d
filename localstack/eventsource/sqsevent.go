package eventsource

import (
	"bytes"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// messageJSON is a record of an SQS event ("Using Lambda with Amazon SQS").
type messageJSON struct {
	MessageID         string                   `json:"messageId"`
	ReceiptHandle     string                   `json:"receiptHandle"`
	Body              string                   `json:"body"`
	Attributes        map[string]string        `json:"attributes"`
	MessageAttributes map[string]attributeJSON `json:"messageAttributes"`
	MD5OfBody         string                   `json:"md5OfBody"`
	MD5OfAttributes   string                   `json:"md5OfMessageAttributes,omitempty"`
	EventSource       string                   `json:"eventSource"`
	EventSourceARN    string                   `json:"eventSourceARN"`
	AWSRegion         string                   `json:"awsRegion"`
}

// attributeJSON is a message attribute. SQS documents the two lists as "Not implemented. Reserved
// for future use", but Lambda's events always contain them.
type attributeJSON struct {
	StringValue *string  `json:"stringValue,omitempty"`
	BinaryValue []byte   `json:"binaryValue,omitempty"`
	StringList  []string `json:"stringListValues"`
	BinaryList  [][]byte `json:"binaryListValues"`
	DataType    string   `json:"dataType"`
}

// messageRecord returns the JSON of a message as the function receives it. arn is the ARN of the
// queue, and region the Region of the mapping.
func messageRecord(m types.Message, arn, region string) []byte {
	record := messageJSON{
		MessageID:         aws.ToString(m.MessageId),
		ReceiptHandle:     aws.ToString(m.ReceiptHandle),
		Body:              aws.ToString(m.Body),
		Attributes:        m.Attributes,
		MessageAttributes: map[string]attributeJSON{},
		MD5OfBody:         aws.ToString(m.MD5OfBody),
		MD5OfAttributes:   aws.ToString(m.MD5OfMessageAttributes),
		EventSource:       "aws:sqs",
		EventSourceARN:    arn,
		AWSRegion:         region,
	}
	for name, a := range m.MessageAttributes {
		record.MessageAttributes[name] = attributeJSON{
			StringValue: a.StringValue, BinaryValue: a.BinaryValue,
			StringList: []string{}, BinaryList: [][]byte{},
			DataType: aws.ToString(a.DataType),
		}
	}
	return encoded(record)
}

// encoded returns v as JSON, without escapes for HTML. An escape has six bytes instead of one,
// and would count towards the size limit of an event.
func encoded(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // strings, bytes, numbers and maps of them always marshal
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
