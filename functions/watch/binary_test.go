package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// The binary that is deployed finds an attempt of a guarded function that died, with the
// environment that template.yaml or watch.yaml gives it.
func TestO2_TheBinaryFindsAnAttemptThatDied(t *testing.T) {
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bootstrap, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	renamed := func(own string) template.Options {
		return template.Options{Rename: func(kind, name string) string {
			if kind == "AWS::DynamoDB::Table" {
				name += "-" + own
			}
			return name
		}}
	}
	t.Run("template.yaml", func(t *testing.T) {
		sam := readTemplate(t, "template.yaml", renamed(rand.Text()))
		sam.Functions, sam.Tables = []*template.Function{sam.Function("WatchFunction")}, sam.Tables[:1]
		finds(t, bootstrap, sam, "local")
	})
	t.Run("watch.yaml, nested in a template", func(t *testing.T) {
		options := renamed(rand.Text())
		parent := readTemplate(t, "watch/testdata/template.yaml", options)
		// With 64 shards, the default, the watch would not find the record below.
		options.Parameters = map[string]string{"IdempotencyTable": parent.Tables[0].Name, "LeaseShards": "256", "Routes": "POST /payments, POST /payments/{id}/refunds"}
		sam := readTemplate(t, "watch.yaml", options)
		sam.Tables = parent.Tables
		finds(t, bootstrap, sam, "WatchFunction") // the service is the function, because the parameter Service is not given
	})
}

func readTemplate(t *testing.T, name string, options template.Options) *template.Template {
	t.Helper()
	sam, err := template.Read(filepath.Join("..", "..", name), options)
	if err != nil {
		t.Fatal(err)
	}
	return sam
}

// finds runs the WatchFunction of a template before and after an attempt dies.
func finds(t *testing.T, bootstrap string, sam *template.Template, service string) {
	t.Helper()
	env := sam.Functions[0].Environment
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	client := server.Client()
	if err := template.CreateTables(t.Context(), client, sam.Tables); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &sam.Tables[0].Name}); err != nil {
			t.Error(err)
		}
	})
	e, err := emulator.Start(t.Context(), emulator.Options{Template: sam, Binary: func(string) string { return bootstrap }, Endpoint: server.Endpoint(), Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	look := func() string {
		t.Helper()
		got, err := e.Invoke(t.Context(), "WatchFunction", []byte(`{"detail-type":"Scheduled Event"}`))
		if err != nil || got.FunctionError != "" {
			t.Fatalf("%v, %s: %s\n%s", err, got.FunctionError, got.Payload, got.LogTail)
		}
		return string(got.LogTail)
	}
	expect := func(log string, all, payments int) {
		t.Helper()
		for dimensions, n := range map[string]int{
			fmt.Sprintf(`"service":%q,"function":"WatchFunction","DeadLeases":%d,`, service, all):               1,
			fmt.Sprintf(`"function":"WatchFunction","route":"POST /payments","DeadLeases":%d,`, payments):       1,
			fmt.Sprintf(`"function":"WatchFunction","route":"POST /payments/{id}/refunds","DeadLeases":%d,`, 0): 1,
		} {
			if strings.Count(log, dimensions) != n {
				t.Errorf("the log has no %s:\n%s", dimensions, log)
			}
		}
	}
	expect(look(), 0, 0)

	// A guard like that of functions/payments, whose clock is an hour slow.
	store := dynamostore.New(client, env["IDEMPOTENCY_TABLE"], func(o *dynamostore.Options) {
		o.LeaseIndex, o.AttemptTimeout = env["IDEMPOTENCY_LEASE_INDEX"], time.Minute
		if shards := env["IDEMPOTENCY_LEASE_SHARDS"]; shards != "" {
			o.LeaseShards, _ = strconv.Atoi(shards) // 0, the default, would fail the test below
		}
	})
	crashing := idemtest.NewStore(store)
	guard := lambdaidem.New(crashing, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "PaymentsFunction", lambdaidem.Discard
		o.Clock = func() time.Time { return time.Now().Add(-time.Hour) }
	})
	pay := guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		crashing.Kill(ctx)
		return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
	})
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) {
		_, _ = pay(ctx, idemtest.Request{Path: "/payments", Key: "k"}.APIGatewayV2())
	})
	log := look()
	expect(log, 1, 1)
	if id := "lambdaidem#"; !strings.Contains(log, `"record":"`+id) || !strings.Contains(log, `"route":"POST /payments"`) {
		t.Errorf("the record is not in the log:\n%s", log)
	}
}
