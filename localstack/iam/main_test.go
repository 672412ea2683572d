package iam_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// TestMain checks that no goroutine of a proxy is left after Close.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The ARNs of the resources of shop.
const (
	orders = "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"
	byUser = orders + "/index/byUser"
	stream = orders + "/stream/local"
	mails  = "arn:aws:sqs:us-east-1:000000000000:Mails"
)

// shop returns a template with the function Shop, a table whose partition key is user, and a
// queue. statements are YAML, each a mapping in flow style.
func shop(t *testing.T, statements ...string) *template.Template {
	t.Helper()
	sam, err := template.Parse("template.yaml", []byte(`
Resources:
  Shop:
    Type: AWS::Serverless::Function
    Properties:
      Policies:
        - Statement:
            - `+strings.Join(statements, "\n            - ")+`
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: user, AttributeType: S}, {AttributeName: order, AttributeType: S}]
      KeySchema: [{AttributeName: user, KeyType: HASH}, {AttributeName: order, KeyType: RANGE}]
      GlobalSecondaryIndexes:
        - IndexName: byUser
          KeySchema: [{AttributeName: order, KeyType: HASH}]
          Projection: {ProjectionType: ALL}
  Mails: {Type: AWS::SQS::Queue}
  Topic: {Type: AWS::SNS::Topic}
`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sam
}

func newChecker(t *testing.T, statements ...string) *iam.Checker {
	t.Helper()
	checker, err := iam.New(shop(t, statements...))
	if err != nil {
		t.Fatal(err)
	}
	return checker
}
