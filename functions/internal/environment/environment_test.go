package environment_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/functions/internal/environment"
)

func TestMissingVariablesAreAllNamed(t *testing.T) {
	t.Setenv("IDEMPOTENCY_TABLE", "")
	t.Setenv("PAYMENTS_TABLE", "")
	_, err := environment.Load(t.Context())
	if err == nil {
		t.Fatal("Load took an empty environment")
	}
	for _, name := range []string{"IDEMPOTENCY_TABLE", "PAYMENTS_TABLE"} {
		if !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("Load says %q; it should name %s", err, name)
		}
	}
}

func TestDemoIsOffByDefault(t *testing.T) {
	t.Setenv("IDEMPOTENCY_TABLE", "records")
	t.Setenv("PAYMENTS_TABLE", "payments")
	for value, want := range map[string]bool{"": false, "0": false, "true": false, "1": true} {
		t.Setenv("DEMO", value)
		env, err := environment.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if env.Demo != want || env.IdempotencyTable != "records" || env.PaymentsTable != "payments" || env.DynamoDB == nil {
			t.Errorf("with DEMO=%q, Load = %+v; want Demo %v and both tables", value, env, want)
		}
	}
}
