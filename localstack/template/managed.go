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

var (
	ofTable  = "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${TableName}"
	ofQueue  = "arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:${QueueName}"
	andIndex = []string{ofTable, ofTable + "/index/*"}
)

// samPolicyTemplates maps the name of a SAM policy template for tables or queues to its statements
// ("AWS SAM policy templates", "Policy template list"). No other policy template allows anything on
// tables and queues.
var samPolicyTemplates = map[string][]grant{
	"DynamoDBCrudPolicy": {{[]string{
		"dynamodb:GetItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Scan", "dynamodb:Query", "dynamodb:UpdateItem",
		"dynamodb:BatchWriteItem", "dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:ConditionCheckItem",
	}, andIndex}},
	"DynamoDBReadPolicy": {{[]string{
		"dynamodb:GetItem", "dynamodb:Scan", "dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:DescribeTable",
	}, andIndex}},
	"DynamoDBWritePolicy":       {{[]string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"}, andIndex}},
	"DynamoDBReconfigurePolicy": {{[]string{"dynamodb:UpdateTable"}, []string{ofTable}}},
	"DynamoDBStreamReadPolicy": {
		{[]string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}, []string{ofTable + "/stream/${StreamName}"}},
		{[]string{"dynamodb:ListStreams"}, []string{ofTable + "/stream/*"}},
	},
	"DynamoDBBackupFullAccessPolicy": {
		{[]string{"dynamodb:CreateBackup", "dynamodb:DescribeContinuousBackups"}, []string{ofTable}},
		{[]string{"dynamodb:DeleteBackup", "dynamodb:DescribeBackup", "dynamodb:ListBackups"}, []string{ofTable + "/backup/*"}},
	},
	"DynamoDBRestoreFromBackupPolicy": {
		{[]string{"dynamodb:RestoreTableFromBackup"}, []string{ofTable + "/backup/*"}},
		{[]string{
			"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan",
			"dynamodb:BatchWriteItem",
		}, []string{ofTable}},
	},
	"SQSPollerPolicy": {{[]string{
		"sqs:ChangeMessageVisibility", "sqs:ChangeMessageVisibilityBatch", "sqs:DeleteMessage", "sqs:DeleteMessageBatch",
		"sqs:GetQueueAttributes", "sqs:ReceiveMessage",
	}, []string{ofQueue}}},
	"SQSSendMessagePolicy": {{[]string{"sqs:SendMessage*"}, []string{ofQueue}}},
}

// samTemplate adds the statements of a SAM policy template.
func (p *policies) samTemplate(at *node, name string, parameters *node) {
	grants, found := samPolicyTemplates[name]
	if !found && (strings.HasPrefix(name, "DynamoDB") || strings.HasPrefix(name, "SQS")) {
		p.unknown(at, "the SAM policy template %s is not known in a local run", name)
	}
	for _, g := range grants {
		p.grant(at, name, g, parameters)
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

// destination adds the statement that SAM adds to a role for a destination or a dead-letter queue
// whose Type is SQS. key is the property with the queue's ARN.
func (p *policies) destination(n *node, key string) {
	n = p.reader.branch(n)
	if n == nil || p.reader.nameOf(n, "Type") != "SQS" || n.field(key) == nil {
		return
	}
	s := Statement{At: fmt.Sprintf("%d:%d", n.line, n.column), Effect: "Allow", Actions: []string{"sqs:SendMessage"}}
	s.Resources = p.reader.texts(n.field(key), &s.Unknown)
	p.role.Statements = append(p.role.Statements, s)
}
