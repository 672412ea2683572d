package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// A template whose parameters have no default serves tests too.
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
