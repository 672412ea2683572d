package iam

import (
	"encoding/json"
	"net/url"
	"path"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// sqsInput has the parameters that name a queue, for all operations of SQS.
type sqsInput struct {
	QueueURL       string `json:"QueueUrl"`
	QueueName      string
	SourceArn      string
	DestinationArn string
}

// sqsRequests returns the permissions that a call of SQS needs ("Amazon SQS API permissions:
// Actions and resource reference").
func sqsRequests(operation, region, account string, in sqsInput) []Request {
	queue := func(name string) string { return template.ARN("sqs", region, account, name) }
	resource := queue(in.QueueName)
	switch {
	case in.QueueURL != "":
		resource = queue(path.Base(in.QueueURL))
	case in.SourceArn != "":
		resource = in.SourceArn
	}
	// "Setting permissions for SendMessage, DeleteMessage, or ChangeMessageVisibility sets
	// permissions for the corresponding batch versions" ("Amazon SQS batch actions").
	actions := []string{strings.TrimSuffix(operation, "Batch")}
	if operation == "StartMessageMoveTask" {
		actions = append(actions, "ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
	}
	var all []Request
	for _, action := range actions {
		all = append(all, Request{Action: "sqs:" + action, Resource: resource})
	}
	if operation == "StartMessageMoveTask" && in.DestinationArn != "" {
		all = append(all, Request{Action: "sqs:SendMessage", Resource: in.DestinationArn})
	}
	return all
}

// readSQS reads a call of SQS in its JSON protocol or, if target is empty, in its query
// protocol.
func readSQS(target string, body []byte) (operation string, in sqsInput, err error) {
	if target != "" {
		_, operation, _ = strings.Cut(target, ".")
		err = json.Unmarshal(body, &in)
		return operation, in, err
	}
	form, err := url.ParseQuery(string(body))
	return form.Get("Action"), sqsInput{form.Get("QueueUrl"), form.Get("QueueName"), form.Get("SourceArn"), form.Get("DestinationArn")}, err
}
