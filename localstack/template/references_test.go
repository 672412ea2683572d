package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestD1_DynamicReferencesTakeTheValueThatIsGiven(t *testing.T) {
	const text = `
Parameters:
  Stage: {Type: String, Default: dev}
  Old: {Type: String, Default: '{{resolve:ssm:/shop/old:3}}'}
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      Description: '{{resolve:ssm:/shop/never-read}}'
      Environment:
        Variables:
          PLAIN: '{{resolve:ssm:/shop/key:1}}'
          MADE: !Sub '{{resolve:ssm:/shop/${Stage}/key}}'
          JOINED: !Join ['', ['{{resolve:ssm:', /shop/, !Ref Stage, '/key}}']]
          WITHIN: 'https://{{resolve:secretsmanager:shop:SecretString:user}}:{{resolve:ssm-secure:pass}}@host'
          OLD: !Ref Old
          TABLE: !Ref T
  T:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: '{{resolve:ssm:/shop/table}}'
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
`
	sam, err := template.Parse("t.yaml", []byte(text), template.Options{References: map[string]string{
		"ssm:/shop/key:1": "one", "ssm:/shop/dev/key": "two", "secretsmanager:shop:SecretString:user": "u", "ssm-secure:pass": "p",
		"ssm:/shop/old:3": "three", "ssm:/shop/table": "records",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"PLAIN": "one", "MADE": "two", "JOINED": "two", "WITHIN": "https://u:p@host", "OLD": "three", "TABLE": "records"}
	if diff := cmp.Diff(want, sam.Functions[0].Environment); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if name := sam.Tables[0].Name; name != "records" {
		t.Errorf("the table is called %q, want records", name)
	}
}

func TestD1_AMissingReferenceIsNamedWithTheWayToGiveIt(t *testing.T) {
	const text = `Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {ONE: 'a {{resolve:ssm:/shop/key:1}}'}}
`
	_, err := template.Parse("t.yaml", []byte(text), template.Options{References: map[string]string{"ssm:/shop/key": "another version"}})
	for _, want := range []string{"t.yaml:5:38: {{resolve:ssm:/shop/key:1}}", `template.Options.References["ssm:/shop/key:1"]`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A dynamic reference is also replaced in an item of a list, and in a resource's name to which
// another property refers.
func TestD1_DynamicReferencesAreFoundWhereverAValueIs(t *testing.T) {
	const text = `Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {QUEUE: !Select [5, !Split [':', !GetAtt Q.Arn]]}}
      Events:
        E:
          Type: HttpApi
          Properties:
            ApiId: !Ref Api
            Path: /a
            Method: get
            Auth: {Authorizer: Jwt, AuthorizationScopes: ['{{resolve:ssm:scope}}', b]}
  Q:
    Type: AWS::SQS::Queue
    Properties: {QueueName: '{{resolve:ssm:queue}}'}
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      Auth: {Authorizers: {Jwt: {JwtConfiguration: {issuer: '{{resolve:ssm:nobody-reads-this}}', audience: [x]}}}}
`
	sam, err := template.Parse("t.yaml", []byte(text), template.Options{References: map[string]string{"ssm:scope": "pay", "ssm:queue": "later"}})
	if err != nil {
		t.Fatal(err)
	}
	f := sam.Functions[0]
	if got := f.Environment["QUEUE"]; got != "later" {
		t.Errorf("QUEUE is %q, want the queue's name", got)
	}
	if diff := cmp.Diff([]string{"pay", "b"}, f.Routes[0].Scopes); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
}
