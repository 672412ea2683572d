package iam

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// CheckSources returns an error if the role of a function lacks a permission that Lambda needs to
// read the function's queues and streams, or to send to an OnFailure queue. AWS refuses to
// create such an event source mapping ("Using Lambda with Amazon SQS" and "Using AWS Lambda with
// Amazon DynamoDB", under permissions).
func (c *Checker) CheckSources() error {
	var errs []error
	for _, f := range c.template.Functions {
		for _, source := range f.Sources {
			needed := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
			if source.Table != "" {
				needed = []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}
			}
			for _, action := range needed {
				errs = append(errs, c.checkSource(f, source.Name, Request{Action: action, Resource: source.ARN}))
			}
			if strings.Contains(source.OnFailure, ":sqs:") {
				errs = append(errs, c.checkSource(f, source.Name, Request{Action: "sqs:SendMessage", Resource: source.OnFailure}))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("iam: AWS would refuse an event source mapping, because a role lacks a permission: %w", err)
	}
	return nil
}

func (c *Checker) checkSource(f *template.Function, source string, r Request) error {
	d := c.Decide(f.LogicalID, r)
	c.count(f.LogicalID, r, d)
	if d.Allowed {
		return nil
	}
	return fmt.Errorf("%s/%s needs %s on %s: %s; add it to the policies of %s", f.LogicalID, source, r.Action, r.Resource, d.Reason, f.Role.Name)
}
