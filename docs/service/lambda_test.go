package main

import (
	"crypto/rand"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestPayment_AsDeployed(t *testing.T) {
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	if output, err := exec.Command("go", "build", "-o", bootstrap, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	sam, err := template.Read("template.yaml", template.Options{StackName: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	database := ddblocal.ForTest(t)
	if err := template.CreateTables(t.Context(), database.Client(), sam.Tables); err != nil {
		t.Fatal(err)
	}
	e, err := emulator.Start(t.Context(), emulator.Options{
		Template: sam,
		Binary:   func(string) string { return bootstrap }, // by the function's logical ID
		Endpoint: database.Endpoint(),
		Log:      t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()

	for _, want := range []string{"", "true"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL()+"/payments", strings.NewReader(`{"amount":100}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "order-1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusCreated || answer.Header.Get("X-Idempotency-Replayed") != want {
			t.Errorf("%s %v %s, %v", answer.Status, answer.Header, body, err)
		}
	}
}
