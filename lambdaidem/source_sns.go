package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// SNS guards a handler of the messages of an SNS topic. Lambda invokes the function asynchronously:
// if a message fails, the function returns an error, and Lambda invokes it again, by default twice
// ("Error handling for asynchronous invocation"). SNS and Lambda may also deliver a message again
// without any error.
//
// If another invocation is still handling the same message, this invocation waits for that
// invocation, because an error could use up the retries before the other invocation's lease ends.
// The wait ends shortly before this invocation's deadline, or after BatchOptions.Wait if that is
// set. Allow the function at least one retry, and configure a destination for failures.
func (g *Guard) SNS(h func(context.Context, events.SNSEventRecord) error, optFns ...func(*BatchOptions[events.SNSEventRecord])) func(context.Context, events.SNSEvent) error {
	return wholeEvent(guardMessages(g, source[events.SNSEvent, events.SNSEventRecord]{
		list:           func(e events.SNSEvent) []events.SNSEventRecord { return e.Records },
		convert:        snsMessage,
		limitedRetries: true,
	}, h, optFns))
}

func snsMessage(_ events.SNSEvent, e events.SNSEventRecord) message {
	m := message{name: e.SNS.MessageID, source: e.SNS.TopicArn, id: e.SNS.MessageID, body: []byte(e.SNS.Message), parts: []string{e.SNS.Subject}, form: []string{"subject"}}
	for name, a := range e.SNS.MessageAttributes {
		fields, _ := a.(map[string]any)
		dataType, isType := fields["Type"].(string)
		value, isText := fields["Value"].(string)
		if !isType || !isText { // SNS sends no attributes of this form
			dataType, value = "", jsonText(a)
		}
		m.attribute(name, dataType, value)
	}
	return m
}
