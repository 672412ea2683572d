package iam_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestReport(t *testing.T) {
	w := newWorld(t, iam.DynamoDB,
		"{Effect: Allow, Action: ['dynamodb:GetItem', 'dynamodb:PutItem'], Resource: !GetAtt Orders.Arn}",
		"{Effect: Allow, Action: 'sqs:SendMessage', Resource: !GetAtt Mails.Arn}",
		"{Effect: Allow, NotAction: 's3:*', NotResource: '*'}",
		"{Effect: Deny, Action: 'dynamodb:DeleteTable', Resource: '*'}",
	)
	client := w.dynamoDB(iam.AccessKeyID("Shop"))
	for range 2 {
		if _, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("Orders"), Key: key("a")}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("Orders")}); err == nil {
			t.Fatal("DeleteTable was allowed")
		}
	}
	var report strings.Builder
	w.checker.Report(&report)
	want := `Refused, as AWS would:
  Shop  dynamodb:DeleteTable ×2  table/Orders
Granted and used:
  Shop  dynamodb:GetItem ×2  table/Orders  template.yaml:8:15
Granted and not used yet (a failure, a rare path or an operator may still need it):
  Shop  dynamodb:PutItem     table/Orders      template.yaml:8:15
  Shop  sqs:SendMessage      Mails             template.yaml:9:15
  Shop  everything but s3:*  everything but *  template.yaml:10:15
Not checked, because no such service runs here: logs
`
	if report.String() != want {
		t.Errorf("the report is\n%s\nwant\n%s", &report, want)
	}
}

// The statements of a SAM policy template have the same place in the template. The report still
// shows the resources of each.
func TestReport_StatementsAtOnePlace(t *testing.T) {
	sam, err := template.Parse("template.yaml", []byte(`
Resources:
  Shop:
    Type: AWS::Serverless::Function
    Properties:
      Policies: [DynamoDBStreamReadPolicy: {TableName: Orders, StreamName: local}]
`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checker, err := iam.New(sam)
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	checker.Report(&report)
	want := `Granted and not used yet (a failure, a rare path or an operator may still need it):
  Shop  dynamodb:DescribeStream, dynamodb:GetRecords, dynamodb:GetShardIterator  table/Orders/stream/local  template.yaml:6:18
  Shop  dynamodb:ListStreams                                                     table/Orders/stream/*      template.yaml:6:18
Not checked, because no such service runs here: logs
`
	if report.String() != want {
		t.Errorf("the report is\n%s\nwant\n%s", &report, want)
	}
}
