//go:build powertools

package powertools_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// These tests run functions with Powertools for AWS Lambda: tools/powertools/app.py and app.mjs.
// `make powertools` installs the libraries and runs the tests.

// app runs a function with Powertools. Its table has the records of the function and of the guard.
type app struct {
	language powertools.Language
	prefix   string
	command  []string
	client   *dynamodb.Client
	table    string
	sortKey  string
	env      []string
}

type invocation struct {
	Event request `json:"event"`
	Left  int     `json:"left"` // milliseconds until the invocation's deadline
	Dies  bool    `json:"dies"`
}

type reply struct {
	Answer response
	Ran    bool
	Error  string
}

func payment(order int) request {
	return idemtest.Request{Path: "/payments", Key: fmt.Sprintf("key-%d", order), Body: fmt.Sprintf(`{"order_id":%d,"amount":10.50}`, order)}.APIGatewayV2()
}

// invoke runs the function in a process of its own. It returns false if the process died.
func (a *app) invoke(t *testing.T, in invocation) (reply, bool) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), a.command[0], a.command[1:]...)
	cmd.Env, cmd.Stdin = append(os.Environ(), a.env...), bytes.NewReader(append(text, '\n'))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if in.Dies && err != nil && len(out) == 0 {
		return reply{}, false
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", a.command, err, stderr.String())
	}
	var r reply
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%s: %v\n%s", out, err, stderr.String())
	}
	return r, true
}

// items returns all items of the table by key.
func (a *app) items(t *testing.T) map[string]item {
	t.Helper()
	out, err := a.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &a.table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]item{}
	for _, itm := range out.Items {
		all[fmt.Sprint(itm["id"], itm["PK"], itm["SK"])] = itm
	}
	return all
}

// unchanged fails the test if one of the items was changed or deleted.
func (a *app) unchanged(t *testing.T, before map[string]item) {
	t.Helper()
	after := a.items(t)
	for key, itm := range before {
		if !reflect.DeepEqual(itm, after[key]) {
			t.Errorf("the item %s of the other side was %v, and is %v", key, itm, after[key])
		}
	}
}

func (a *app) storeOptions(o *dynamostore.Options) {
	if a.sortKey != "" {
		o.IDAttribute, o.SortKeyAttribute = "PK", a.sortKey
	}
}

// handler returns a guarded handler that takes over from the function, and the number of its runs.
func (a *app) handler(choose func(context.Context, request) (powertools.Selection, error)) (func(context.Context, request) (response, error), *int) {
	records := powertools.New(a.client, a.table, a.language, a.prefix, func(o *powertools.Options) {
		if a.sortKey != "" {
			o.IDAttribute, o.SortKeyAttribute, o.PartitionKey = "PK", a.sortKey, "idempotency#payments"
		}
	})
	runs := new(int)
	guard := lambdaidem.New(dynamostore.New(a.client, a.table, a.storeOptions))
	return guard.APIGatewayV2(powertools.Handler(records, choose, func(context.Context, request) (response, error) {
		*runs++
		return response{StatusCode: 201, Body: "created in Go"}, nil
	})), runs
}

// apps returns the function in both languages, each once with a table that has a sort key and once
// with a table that has none.
func apps(t *testing.T, expression, validation string) []*app {
	t.Helper()
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	var all []*app
	for _, sortKey := range []string{"", "SK"} {
		for _, a := range []*app{
			{language: powertools.Python, prefix: "payments.__main__.handler", command: []string{os.Getenv("POWERTOOLS_PYTHON"), "../../tools/powertools/app.py"}},
			{language: powertools.TypeScript, prefix: "payments", command: []string{"node", os.Getenv("POWERTOOLS_NODE_APP")}},
		} {
			if slices.Contains(a.command, "") {
				t.Fatal("POWERTOOLS_PYTHON or POWERTOOLS_NODE_APP is not set; run make powertools")
			}
			a.client, a.table, a.sortKey = server.Client(), "test-"+rand.Text(), sortKey
			if err := dynamostore.CreateTable(t.Context(), a.client, a.table, a.storeOptions); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := a.client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &a.table}); err != nil {
					t.Error(err)
				}
			})
			a.env = []string{
				"TABLE=" + a.table, "SORT_KEY=" + sortKey, "EXPRESSION=" + expression, "VALIDATION=" + validation,
				"AWS_LAMBDA_FUNCTION_NAME=payments", "AWS_ENDPOINT_URL_DYNAMODB=" + server.Endpoint(),
				"AWS_REGION=" + server.Config().Region, "AWS_DEFAULT_REGION=" + server.Config().Region,
				"AWS_ACCESS_KEY_ID=" + ddblocal.DummyCredential, "AWS_SECRET_ACCESS_KEY=" + ddblocal.DummyCredential,
			}
			all = append(all, a)
		}
	}
	return all
}

func TestLibrary_D4_BothSidesInOneTable(t *testing.T) {
	for _, a := range apps(t, "powertools_json(body).order_id", "powertools_json(body).amount") {
		t.Run(fmt.Sprintf("%s %s", a.language, a.sortKey), func(t *testing.T) {
			done, inProgress, dead, fresh := payment(1), payment(2), payment(3), payment(4)
			old, _ := a.invoke(t, invocation{Event: done, Left: 60_000})
			if !old.Ran || old.Answer.StatusCode != 201 {
				t.Fatalf("%+v", old)
			}
			for event, left := range map[*request]int{&inProgress: 60_000, &dead: -60_000} {
				if r, lived := a.invoke(t, invocation{Event: *event, Left: left, Dies: true}); lived {
					t.Fatalf("it did not die: %+v", r)
				}
			}
			theirs := a.items(t)
			if len(theirs) != 3 {
				t.Fatalf("%d items: %v", len(theirs), theirs)
			}

			selected := 0
			handle, runs := a.handler(func(_ context.Context, e request) (powertools.Selection, error) {
				selected++
				var body struct {
					OrderID json.RawMessage `json:"order_id"`
					Amount  json.RawMessage `json:"amount"`
				}
				err := json.Unmarshal([]byte(e.Body), &body)
				return powertools.Selection{Data: body.OrderID, Validated: body.Amount}, err
			})
			send := func(e request) response {
				t.Helper()
				got, err := handle(idemtest.Invocation(t, time.Minute), e)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			for range 2 {
				got := send(done)
				got.Headers = map[string]string{"Content-Type": got.Headers["Content-Type"]}
				if got.StatusCode != 201 || got.Body != old.Answer.Body || got.Headers["Content-Type"] != "application/json" || *runs != 0 || selected != 1 {
					t.Errorf("%d runs, %d look-ups, answer %+v; want %+v", *runs, selected, got, old.Answer)
				}
			}
			if got := send(inProgress); got.StatusCode != 409 || got.Headers["Retry-After"] != "1" || *runs != 0 {
				t.Errorf("%d runs, answer %+v", *runs, got)
			}
			changed := payment(1)
			changed.Headers["idempotency-key"], changed.Body = "another-key", `{"order_id":1,"amount":10.51}`
			if got := send(changed); got.StatusCode != 422 || *runs != 0 {
				t.Errorf("another payload: %d runs, answer %+v", *runs, got)
			}
			for i, e := range []request{dead, fresh} {
				if got := send(e); got.Body != "created in Go" || *runs != i+1 {
					t.Errorf("%d runs, answer %+v", *runs, got)
				}
			}
			a.unchanged(t, theirs)

			// The old function still works, and ignores the guard's records in its table.
			ours := a.items(t)
			maps.DeleteFunc(ours, func(key string, _ item) bool { _, is := theirs[key]; return is })
			if len(ours) != 5 {
				t.Errorf("%d records of the guard", len(ours))
			}
			if r, _ := a.invoke(t, invocation{Event: done, Left: 60_000}); r.Ran || r.Answer.Body != old.Answer.Body {
				t.Errorf("%+v", r)
			}
			if r, _ := a.invoke(t, invocation{Event: inProgress, Left: 60_000}); r.Ran || r.Error != "IdempotencyAlreadyInProgressError" {
				t.Errorf("%+v", r)
			}
			if r, _ := a.invoke(t, invocation{Event: fresh, Left: 60_000}); !r.Ran {
				t.Errorf("%+v", r)
			}
			a.unchanged(t, ours)
		})
	}
}

// The whole body identifies a payment, as with the expression powertools_json(body).
func TestLibrary_R1_TheBodyIsTheKey(t *testing.T) {
	for _, a := range apps(t, "powertools_json(body)", "") {
		t.Run(fmt.Sprintf("%s %s", a.language, a.sortKey), func(t *testing.T) {
			e := payment(1)
			e.Body = `{"b": [1.50, 1e21, "Zoë \u20ac"], "A": {"z": null, "Y": -0.0}, "order_id": 9007199254740993}`
			old, _ := a.invoke(t, invocation{Event: e, Left: 60_000})
			handle, runs := a.handler(body)
			got, err := handle(idemtest.Invocation(t, time.Minute), e)
			if err != nil || got.Body != old.Answer.Body || !old.Ran || *runs != 0 {
				t.Errorf("%d runs, %+v, %v; want %+v", *runs, got, err, old)
			}
		})
	}
}
