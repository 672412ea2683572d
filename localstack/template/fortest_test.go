package template_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// TablesForTest can read a template whose parameters have no default, if the test gives their
// values.
func TestTablesForTest_TakesOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "template.yaml")
	text := `
Parameters: {Stage: {Type: String}}
Resources:
  Records:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub ${Stage}-records
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var renamed string
	names := template.TablesForTest(t, ddblocal.ForTest(t).Client(), path, func(o *template.Options) {
		o.Parameters = map[string]string{"Stage": "dev"}
		o.Rename = func(_, name string) string { renamed = name; return "shop-" + name }
	})
	if got := names["Records"]; !strings.HasPrefix(got, "test-Records-") {
		t.Errorf("the table is %q", got)
	}
	if renamed != "dev-records" {
		t.Errorf("Options.Rename was asked for %q", renamed)
	}
}

// TablesForTest does not read parameters, functions and other resources unless a table uses them.
func TestTablesForTest_ReadsOnlyTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "template.yaml")
	text := `
Parameters: {MailerUrl: {Type: String}}
Resources:
  Mailer:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {MAILER_URL: !Ref MailerUrl, NETWORK: !ImportValue network}}
  Queue:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !ImportValue queue}
  Old: {Type: AWS::Lambda::Function}
  Records:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if names := template.TablesForTest(t, ddblocal.ForTest(t).Client(), path); len(names) != 1 || names["Records"] == "" {
		t.Errorf("the tables are %v", names)
	}
}

// A table of an unsupported type is an error, because the test would need the table.
func TestTablesForTest_RefusesTablesThatItCannotCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte("Resources: {Records: {Type: AWS::Serverless::SimpleTable}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inner := &fatal{TB: t}
	done := make(chan struct{})
	go func() { // Fatal ends its goroutine
		defer close(done)
		template.TablesForTest(inner, nil, path)
	}()
	<-done
	if !strings.Contains(inner.said, "use AWS::DynamoDB::Table") {
		t.Errorf("it said %q", inner.said)
	}
}

// fatal is a testing.TB that records the message of Fatal.
type fatal struct {
	testing.TB
	said string
}

func (f *fatal) Fatal(args ...any) {
	f.said = fmt.Sprint(args...)
	runtime.Goexit()
}
