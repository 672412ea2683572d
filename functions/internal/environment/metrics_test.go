package environment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/functions/internal/environment"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// When a call returns, its outcome is on standard output, with the service and the record. An
// outcome that is worth a warning is also in the log.
func TestO1_CallsAreCountedAndWarningsLogged(t *testing.T) {
	t.Setenv("SERVICE_NAME", "shop")
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "shop-pay")
	t.Setenv("AWS_REGION", "eu-west-1")
	out, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // it is read by its name
	stdout := os.Stdout
	os.Stdout = out
	env, err := environment.Load(t.Context())
	os.Stdout = stdout
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	was := slog.Default()
	defer slog.SetDefault(was)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))

	store := idemtest.NewStore(memstore.New())
	guard := lambdaidem.New(store, env.Observed)
	call := func(key string) {
		_, _ = lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: key}, func(context.Context) (int, error) { return 1, nil })
	}
	call("a")
	store.Next(idemtest.Acquire, idemtest.Refuse(lambdaidem.ReasonNoTable))
	call("b")

	type line struct{ Service, Function, Route, Outcome, Record string }
	var got []line
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for each := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(each, &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	id := func(key string) string { return guard.RecordID(lambdaidem.Identity{Operation: "pay", Key: key}) }
	want := []line{{"shop", "shop-pay", "pay", "new", id("a")}, {"shop", "shop-pay", "pay", "store_error", id("b")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
	if warned := bytes.Count(log.Bytes(), []byte("outcome=")); warned != 1 || !bytes.Contains(log.Bytes(), []byte("outcome=store_error")) {
		t.Errorf("the log has %s", &log)
	}
}
