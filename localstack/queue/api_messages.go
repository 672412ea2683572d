package queue

import (
	"maps"
	"slices"
	"strings"
	"time"
)

type sendMessageRequest struct {
	QueueURL string `json:"QueueUrl"`
	sendParameters
}

// sendParameters are what SendMessage and an entry of its batch share.
type sendParameters struct {
	MessageBody             string
	MessageAttributes       map[string]Attribute
	MessageSystemAttributes map[string]Attribute
	MessageGroupID          string `json:"MessageGroupId"`
	MessageDeduplicationID  string `json:"MessageDeduplicationId"`
	DelaySeconds            *int
}

func (in sendParameters) outgoing() (Outgoing, error) {
	o := Outgoing{
		Body:            in.MessageBody,
		Attributes:      in.MessageAttributes,
		GroupID:         in.MessageGroupID,
		DeduplicationID: in.MessageDeduplicationID,
		Delay:           seconds(in.DelaySeconds),
	}
	for name, a := range in.MessageSystemAttributes {
		if name != "AWSTraceHeader" || a.DataType != "String" || a.StringValue == "" {
			return o, invalidParameterValue.error("Message system attribute name '%s' is invalid: there is AWSTraceHeader alone, a String.", name)
		}
		o.TraceHeader = a.StringValue
	}
	return o, nil
}

// seconds of a request's parameter; nil where there is none. What is far out of
// range stays out of range.
func seconds(n *int) *time.Duration {
	if n == nil {
		return nil
	}
	return new(time.Duration(max(-1, min(*n, 1<<20))) * time.Second)
}

type sendMessageResponse struct {
	ID                           string `json:"Id,omitempty"` // of an entry of a batch
	MessageID                    string `json:"MessageId"`
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string `json:",omitempty"`
}

func (s Sent) response(id string) sendMessageResponse {
	return sendMessageResponse{id, s.MessageID, s.MD5OfBody, s.MD5OfAttributes, s.MD5OfSystemAttributes, s.SequenceNumber}
}

func (c *call) sendMessage(in *sendMessageRequest) (*sendMessageResponse, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	o, err := in.outgoing()
	if err != nil {
		return nil, err
	}
	sent, err := q.Send(o)
	if err != nil {
		return nil, err
	}
	return new(sent.response("")), nil
}

type receiveMessageRequest struct {
	QueueURL                    string `json:"QueueUrl"`
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	ReceiveRequestAttemptID     string `json:"ReceiveRequestAttemptId"`
}

type receivedMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             map[string]string    `json:",omitempty"`
	MessageAttributes      map[string]Attribute `json:",omitempty"`
	MD5OfMessageAttributes string               `json:",omitempty"`
}

type receiveMessageResponse struct {
	Messages []receivedMessage `json:",omitempty"`
}

func (c *call) receiveMessage(in *receiveMessageRequest) (*receiveMessageResponse, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if !validToken(in.ReceiveRequestAttemptID) {
		return nil, badValue(in.ReceiveRequestAttemptID, "ReceiveRequestAttemptId", tokenReason)
	}
	options := ReceiveOptions{Wait: seconds(in.WaitTimeSeconds), Visibility: seconds(in.VisibilityTimeout)}
	if in.MaxNumberOfMessages != nil {
		options.Max = *in.MaxNumberOfMessages
		if options.Max == 0 {
			return nil, outOfRange(0, "MaxNumberOfMessages", 1, 10)
		}
	}
	messages, err := q.Receive(c.ctx, options)
	if err != nil {
		return nil, err
	}
	out := &receiveMessageResponse{}
	system := slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)
	for _, m := range messages {
		attributes := selectAttributes(m.Attributes, in.MessageAttributeNames)
		out.Messages = append(out.Messages, receivedMessage{
			MessageID:              m.ID,
			ReceiptHandle:          m.ReceiptHandle,
			MD5OfBody:              m.MD5OfBody,
			Body:                   m.Body,
			Attributes:             selectSystem(m.System, system),
			MessageAttributes:      attributes,
			MD5OfMessageAttributes: md5OfAttributes(attributes), // of those that are returned
		})
	}
	return out, nil
}

func selectSystem(all map[string]string, names []string) map[string]string {
	if slices.Contains(names, "All") {
		return all
	}
	selected := maps.Clone(all)
	maps.DeleteFunc(selected, func(name, _ string) bool { return !slices.Contains(names, name) })
	return selected
}

// selectAttributes reads MessageAttributeNames: All or .* is all of them, and
// bar.* those whose names begin with bar.
func selectAttributes(all map[string]Attribute, names []string) map[string]Attribute {
	selected := maps.Clone(all)
	maps.DeleteFunc(selected, func(name string, _ Attribute) bool {
		return !slices.ContainsFunc(names, func(wanted string) bool {
			prefix, isPrefix := strings.CutSuffix(wanted, ".*")
			return wanted == "All" || wanted == name || isPrefix && strings.HasPrefix(name, prefix)
		})
	})
	return selected
}

type deleteMessageRequest struct {
	QueueURL      string `json:"QueueUrl"`
	ReceiptHandle string
}

func (c *call) deleteMessage(in *deleteMessageRequest) (none, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return nil, q.Delete(in.ReceiptHandle)
}

type changeMessageVisibilityRequest struct {
	QueueURL          string `json:"QueueUrl"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (c *call) changeMessageVisibility(in *changeMessageVisibilityRequest) (none, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if in.VisibilityTimeout == nil {
		return nil, missing(attrVisibility)
	}
	return nil, q.ChangeVisibility(in.ReceiptHandle, *seconds(in.VisibilityTimeout))
}
