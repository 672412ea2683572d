package environment_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/functions/internal/environment"
)

func TestMissingVariablesAreAllNamed(t *testing.T) {
	t.Setenv("SERVICE_NAME", "")
	t.Setenv(environment.IdempotencyTable, "")
	t.Setenv(environment.PaymentsTable, "")
	t.Setenv(environment.AccountsTable, "")
	_, err := environment.Load(t.Context(), environment.IdempotencyTable, environment.PaymentsTable)
	if err == nil {
		t.Fatal("Load took an empty environment")
	}
	for _, name := range []string{"SERVICE_NAME", "IDEMPOTENCY_TABLE", "PAYMENTS_TABLE"} {
		if !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("Load says %q; it should name %s", err, name)
		}
	}
	if strings.Contains(err.Error(), "ACCOUNTS_TABLE") {
		t.Errorf("Load says %q, of a variable that was not asked for", err)
	}
}

func TestDemoIsOffByDefault(t *testing.T) {
	t.Setenv("SERVICE_NAME", "shop")
	t.Setenv("IDEMPOTENCY_TABLE", "records")
	t.Setenv("AWS_REGION", "eu-west-1")
	for value, want := range map[string]bool{"": false, "0": false, "true": false, "1": true} {
		t.Setenv("DEMO", value)
		env, err := environment.Load(t.Context(), environment.IdempotencyTable)
		if err != nil {
			t.Fatal(err)
		}
		if env.Demo != want || env.Get(environment.IdempotencyTable) != "records" || env.DynamoDB == nil || env.AWS.Region != "eu-west-1" {
			t.Errorf("with DEMO=%q, Load = %+v; want Demo %v, the table and the Region", value, env, want)
		}
	}
}
