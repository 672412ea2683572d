package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The template turns on TTL and point-in-time recovery, and samconfig.toml defines each stage.
// The SAM CLI itself checks and builds the template in make validate.
func TestD2_OneTemplateDeploysAll(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	idempotency := deployedResources(t)["IdempotencyTable"]
	for _, property := range []string{"TimeToLiveSpecification", "PointInTimeRecoverySpecification"} {
		if idempotency.Properties[property] == nil {
			t.Errorf("IdempotencyTable has no %s", property)
		}
	}
	if idempotency.Properties["BillingMode"] != "PAY_PER_REQUEST" || !strings.HasPrefix(idempotency.DeletionPolicy, "Retain") {
		t.Errorf("IdempotencyTable has BillingMode %v and DeletionPolicy %q", idempotency.Properties["BillingMode"], idempotency.DeletionPolicy)
	}
	for _, stage := range []string{"dev", "staging", "prod"} {
		if !strings.Contains(read("samconfig.toml"), `"Stage=`+stage+`"`) {
			t.Errorf("samconfig.toml has no settings for %s", stage)
		}
	}
}
