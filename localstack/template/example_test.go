package template_test

import (
	"fmt"
	"log"

	"github.com/lambdaidem/toolkit/localstack/template"
)

func ExampleParse() {
	sam, err := template.Parse("template.yaml", []byte(`
Resources:
  Refunds:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 5
      Environment: {Variables: {TABLE: !Ref Records}}
      Events:
        Create: {Type: HttpApi, Properties: {Method: post, Path: "/refunds"}}
  Records:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub ${AWS::StackName}-records
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
`), template.Options{StackName: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	f := sam.Functions[0]
	fmt.Println(f.Name, f.Timeout, f.Environment["TABLE"], f.Routes[0].Key())
	fmt.Println(sam.Tables[0].Name, sam.Tables[0].Key)
	// Output:
	// Refunds 5s shop-records POST /refunds
	// shop-records [{id HASH}]
}
