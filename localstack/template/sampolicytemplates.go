package template

import (
	"fmt"
	"strings"
)

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

var (
	ofTable  = "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${TableName}"
	ofQueue  = "arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:${QueueName}"
	andIndex = []string{ofTable, ofTable + "/index/*"}
)

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
