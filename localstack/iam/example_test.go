package iam_test

import (
	"fmt"

	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func Example() {
	sam, err := template.Parse("template.yaml", []byte(`
Resources:
  Orders:
    Type: AWS::Serverless::Function
    Properties:
      Policies:
        - Statement:
            - Effect: Allow
              Action: dynamodb:GetItem
              Resource: !GetAtt Table.Arn
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: id, KeyType: HASH }]
`), template.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	checker, err := iam.New(sam)
	if err != nil {
		fmt.Println(err)
		return
	}
	const table = "arn:aws:dynamodb:us-east-1:000000000000:table/Table"
	fmt.Println(checker.Decide("Orders", iam.Request{Action: "dynamodb:GetItem", Resource: table}).Allowed)
	fmt.Println(checker.Decide("Orders", iam.Request{Action: "dynamodb:PutItem", Resource: table}).Message)
	// Output:
	// true
	// User: arn:aws:sts::000000000000:assumed-role/OrdersRole/Orders is not authorized to perform: dynamodb:PutItem on resource: arn:aws:dynamodb:us-east-1:000000000000:table/Table because no identity-based policy allows the dynamodb:PutItem action
}
