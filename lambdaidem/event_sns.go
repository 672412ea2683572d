package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// SNS guards a handler of the messages of an SNS topic. SNS invokes a function
// asynchronously: where a message fails, the error is returned, and Lambda invokes
// the function again, by default twice ("Error handling for asynchronous
// invocation"). Messages may come again without any error too.
//
// A retry may run out before another attempt's lease ends, so a message that is in
// progress elsewhere waits for it: until shortly before the invocation's deadline, or for
// BatchOptions.Wait if that is set. Let the function have a retry more, and a destination
// on failure.
func (g *Guard) SNS(h func(context.Context, events.SNSEventRecord) error, optFns ...func(*BatchOptions[events.SNSEventRecord])) func(context.Context, events.SNSEvent) error {
	return asynchronous(guardMessages(g, source[events.SNSEvent, events.SNSEventRecord]{
		list:  func(e events.SNSEvent) []events.SNSEventRecord { return e.Records },
		read:  snsMessage,
		lasts: true,
	}, h, optFns))
}

func snsMessage(e events.SNSEventRecord) message {
	m := message{name: e.SNS.MessageID, source: e.SNS.TopicArn, id: e.SNS.MessageID, body: []byte(e.SNS.Message), parts: []string{e.SNS.Subject}, form: []string{"subject"}}
	for name, a := range e.SNS.MessageAttributes {
		fields, _ := a.(map[string]any)
		dataType, isType := fields["Type"].(string)
		value, isText := fields["Value"].(string)
		if !isType || !isText { // of no form that SNS sends
			dataType, value = "", jsonText(a)
		}
		m.attribute(name, dataType, value)
	}
	return m
}

// jsonText returns a decoded JSON value as text.
func jsonText(v any) string {
	text, err := toJSON(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
