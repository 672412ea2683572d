package iam_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// tenantPolicy returns the statement of docs/deploy.md, "A role for each tenant", for one tenant.
func tenantPolicy(t *testing.T, tenant string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### A role for each tenant\n")
	_, block, _ := strings.Cut(section, "```json\n")
	block, _, _ = strings.Cut(block, "```")
	var policy struct{ Statement []json.RawMessage }
	if err := json.Unmarshal([]byte(block), &policy); err != nil || len(policy.Statement) != 1 {
		t.Fatalf("the section has the policy %s: %v", block, err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, policy.Statement[0]); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("REGION:ACCOUNT:table/idempotency", "us-east-1:000000000000:table/Records", "${aws:PrincipalTag/tenant}", tenant).Replace(line.String())
}

// The policy of docs/deploy.md lets a role use the records of its tenant, with the parts of large
// answers, and no others.
func TestS1_ARoleForEachTenant(t *testing.T) {
	sam, err := template.Parse("template.yaml", []byte(`
Resources:
  Acme:
    Type: AWS::Serverless::Function
    Properties: {Policies: [{Statement: [`+tenantPolicy(t, "acme")+`]}]}
  Globex:
    Type: AWS::Serverless::Function
    Properties: {Policies: [{Statement: [`+tenantPolicy(t, "globex")+`]}]}
  Records:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: Records
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := ddblocal.ForTest(t)
	if err := template.CreateTables(t.Context(), server.Client(), sam.Tables); err != nil {
		t.Fatal(err)
	}
	checker, err := iam.New(sam)
	if err != nil {
		t.Fatal(err)
	}
	var warnings bytes.Buffer
	proxy, err := checker.Start(iam.DynamoDB, server.Endpoint(), "local", &warnings)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer func() {
		transport.CloseIdleConnections()
		server.CloseIdleConnections()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	newStore := func(function string) *dynamostore.Store {
		return dynamostore.New(dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(proxy.URL()), HTTPClient: &http.Client{Transport: transport},
			Credentials: credentials.NewStaticCredentialsProvider(iam.AccessKeyID(function), "secret", "")}), "Records")
	}
	charge := func(function, prefix string) (string, error) {
		guard := lambdaidem.New(newStore(function), func(o *lambdaidem.Options) {
			o.Namespace, o.IDPrefix, o.Observer = "payments", prefix, lambdaidem.Discard
		})
		return lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "key-1"}, func(context.Context) (string, error) {
			return function + strings.Repeat(" does not fit into one item", 50_000), nil
		})
	}
	for _, tenant := range []struct{ function, prefix string }{{"Acme", "acme"}, {"Globex", "globex"}} {
		for range 2 {
			if answer, err := charge(tenant.function, tenant.prefix); err != nil || !strings.HasPrefix(answer, tenant.function) {
				t.Fatalf("%s: %.20q, %v", tenant.function, answer, err)
			}
		}
		if warmed := newStore(tenant.function).Warm(t.Context()); warmed.Err != nil {
			t.Error(warmed.Err)
		}
	}
	for _, prefix := range []string{"globex", "acme-2", "acm", ""} {
		var refusal *lambdaidem.Error
		if answer, err := charge("Acme", prefix); !errors.As(err, &refusal) || refusal.Code != lambdaidem.ErrStoreUnavailable || !strings.Contains(err.Error(), "not authorized") {
			t.Errorf("with the prefix %q, Acme got %.20q, %v; want ErrStoreUnavailable", prefix, answer, err)
		}
	}
	if strings.Contains(warnings.String(), "may refuse") {
		t.Errorf("not every condition was checked: %s", &warnings)
	}
}
