package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestD2_OneTemplateDeploysAll: TTL, recovery, alarms and stages stand in the
// files that deploy. `make validate` has the SAM CLI check and build them.
func TestD2_OneTemplateDeploysAll(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var doc struct {
		Resources map[string]struct {
			Type           string         `yaml:"Type"`
			DeletionPolicy string         `yaml:"DeletionPolicy"`
			Properties     map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(read("template.yaml")), &doc); err != nil {
		t.Fatal(err)
	}
	idempotency := doc.Resources["IdempotencyTable"]
	for _, property := range []string{"TimeToLiveSpecification", "PointInTimeRecoverySpecification"} {
		if idempotency.Properties[property] == nil {
			t.Errorf("IdempotencyTable has no %s", property)
		}
	}
	if idempotency.Properties["BillingMode"] != "PAY_PER_REQUEST" || !strings.HasPrefix(idempotency.DeletionPolicy, "Retain") {
		t.Errorf("IdempotencyTable has BillingMode %v and DeletionPolicy %q", idempotency.Properties["BillingMode"], idempotency.DeletionPolicy)
	}
	alarms := 0
	for _, r := range doc.Resources {
		if r.Type == "AWS::CloudWatch::Alarm" {
			alarms++
		}
	}
	if alarms == 0 {
		t.Error("the template has no alarm")
	}
	for _, stage := range []string{"dev", "staging", "prod"} {
		if !strings.Contains(read("samconfig.toml"), `"Stage=`+stage+`"`) {
			t.Errorf("samconfig.toml has no settings for %s", stage)
		}
	}
}
