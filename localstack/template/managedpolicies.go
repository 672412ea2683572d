package template

import (
	"fmt"
	"strings"
)

// grant is a statement of a policy that AWS or SAM defines. In a resource, ${Name} is a parameter of
// the SAM policy template.
type grant struct{ actions, resources []string }

var everywhere = []string{"*"}

// awsManagedPolicies maps the name of a managed policy of AWS to its statements, as the AWS Managed
// Policy Reference Guide lists them. It leaves out actions of services that a local run doesn't
// have, except the actions for logs.
var awsManagedPolicies = map[string][]grant{
	"AWSLambdaBasicExecutionRole":     {logs},
	"AWSLambdaVPCAccessExecutionRole": {logs},
	"AWSXRayDaemonWriteAccess":        {},
	"AWSXrayWriteOnlyAccess":          {},
	"AWSLambdaSQSQueueExecutionRole": {logs, {
		[]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}, everywhere,
	}},
	"AWSLambdaDynamoDBExecutionRole": {logs, {
		[]string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}, everywhere,
	}},
	"AmazonDynamoDBFullAccess":    {{[]string{"dynamodb:*"}, everywhere}},
	"AmazonDynamoDBFullAccess_v2": {{[]string{"dynamodb:*"}, everywhere}},
	"AmazonSQSFullAccess":         {{[]string{"sqs:*"}, everywhere}},
	"PowerUserAccess":             {{[]string{"dynamodb:*", "sqs:*"}, everywhere}},
	"AdministratorAccess":         {{[]string{"*"}, everywhere}},
}

var logs = grant{[]string{"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}, everywhere}

// awsManaged adds the statements of a managed policy of AWS. policy is its name or its ARN.
func (p *policies) awsManaged(at *node, policy string) {
	name := policy[strings.LastIndex(policy, "/")+1:]
	grants, found := awsManagedPolicies[name]
	if strings.HasPrefix(policy, "arn:") && !strings.Contains(policy, ":iam::aws:policy/") {
		found = false // a policy of the account may have any name
	}
	if !found {
		p.unknown(at, "what the managed policy %s allows is not known in a local run", policy)
		return
	}
	for _, g := range grants {
		p.grant(at, name, g, nil)
	}
}

// grant adds the statement of a policy that AWS or SAM defines.
func (p *policies) grant(at *node, policy string, g grant, parameters *node) {
	s := Statement{At: fmt.Sprintf("%d:%d", at.line, at.column), Policy: policy, Effect: "Allow", Actions: g.actions}
	for _, resource := range g.resources {
		if resource == "*" {
			s.Resources = append(s.Resources, resource)
			continue
		}
		sub := &node{kind: call, fn: "Sub", line: at.line, column: at.column, arg: &node{kind: list, items: []*node{textNode(resource), parameters}}}
		s.Resources = append(s.Resources, p.reader.texts(sub, &s.Unknown)...)
	}
	p.role.Statements = append(p.role.Statements, s)
}
