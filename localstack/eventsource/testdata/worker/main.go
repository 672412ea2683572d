// Command worker is a Lambda function that handles SQS messages. When it first receives a message
// with the body "crash", it exits; with the body "report", it reports the message as failed. All
// other messages succeed.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

type worker struct{}

func (worker) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	var response events.SQSEventResponse
	for _, m := range event.Records {
		if m.Attributes["ApproximateReceiveCount"] != "1" {
			continue
		}
		switch m.Body {
		case "crash":
			os.Exit(7)
		case "report":
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return json.Marshal(response)
}

func main() { lambda.Start(worker{}) }
