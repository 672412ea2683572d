package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// binary builds the command once for all tests, as `go install` does, and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "idem")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "idem")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// night is a table with records of a guard, and a proxy through which the command's binary reaches
// DynamoDB.
type night struct {
	t      *testing.T
	client *dynamodb.Client
	table  string
	store  *dynamostore.Store
	proxy  *httptest.Server
	shown  map[string]string // the tokens of records, by id, as they were first read

	mu     sync.Mutex
	calls  map[string]bool // the DynamoDB actions that the binary has called
	passes func()          // called before each request of the binary; nil for none
}

func openNight(t *testing.T) *night {
	t.Helper()
	server := ddblocal.ForTest(t)
	n := &night{t: t, client: server.Client(), table: "test-" + rand.Text(), calls: map[string]bool{}, shown: map[string]string{}}
	indexed := func(o *dynamostore.Options) { o.LeaseIndex = "leases" }
	if err := dynamostore.CreateTable(t.Context(), n.client, n.table, indexed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := n.client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(n.table)}); err != nil {
			t.Error(err)
		}
	})
	n.store = dynamostore.New(n.client, n.table, indexed, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute })
	to, err := url.Parse(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	n.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		n.mu.Lock()
		n.calls[action] = true
		passes := n.passes
		n.mu.Unlock()
		if passes != nil {
			passes()
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(n.proxy.Close)
	return n
}

// command returns a command that runs the binary with the arguments.
func (n *night) command(args ...string) *exec.Cmd {
	n.t.Helper()
	path, err := binary()
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.CommandContext(n.t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+n.proxy.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"AWS_CONFIG_FILE=/none", "AWS_SHARED_CREDENTIALS_FILE=/none", "AWS_PROFILE=", "IDEM_TABLE="+n.table)
	return cmd
}

// run runs the binary and returns its exit code and its output.
func (n *night) run(args ...string) (code int, out string) {
	n.t.Helper()
	cmd := n.command(args...)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	ended := (*exec.ExitError)(nil)
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		n.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), all.String()
}

// pay makes a guarded payment whose attempt began some time ago, and returns the record's id.
func (n *night) pay(owner, key string, ago time.Duration, policy lambdaidem.Policy, end func(context.Context) error) string {
	n.t.Helper()
	clock := time.Now().Add(-ago)
	guard := lambdaidem.New(n.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Policy, o.Observer, o.Clock = "payments", policy, lambdaidem.Discard, func() time.Time { return clock }
	})
	e := events.APIGatewayV2HTTPRequest{RouteKey: "POST /payments", RawPath: "/payments", Body: `{"amount":"4.20"}`, Headers: map[string]string{"idempotency-key": key, "content-type": "application/json"}}
	e.RequestContext.HTTP.Method = http.MethodPost
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://login.example", "sub": owner}},
	}
	id := ""
	_, err := guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		id = lambdaidem.RecordID(ctx)
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: `{"payment":"p-16"}`}, end(ctx)
	})(n.t.Context(), e)
	if err != nil && !errors.Is(err, errCard) {
		n.t.Fatal(err)
	}
	return id
}

var errCard = errors.New("the card network timed out")

func well(context.Context) error { return nil }

// died is a handler that saves one step, "reserve", and leaves the outcome uncertain.
func died(ctx context.Context) error {
	_, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (string, error) { return "r-9", nil })
	return lambdaidem.Uncertain(errors.Join(errCard, err))
}

// After SIGKILL, the same command continues where the first process stopped.
func TestO2_PurgeGoesOnAfterSIGKILL(t *testing.T) {
	n := openNight(t)
	const records = 400
	for i := range records {
		n.pay("alice", fmt.Sprintf("k-%d", i), time.Minute, lambdaidem.Rerun, well)
	}
	state := filepath.Join(t.TempDir(), "purge.json")
	purge := []string{"purge", "--namespace", "payments", "--reason", "r", "--yes", "--rate", "100000", "--state", state}
	first := n.command(purge...)
	n.mu.Lock()
	n.passes = func() { // kill the process as soon as the journal exists
		if _, err := os.Stat(state); err == nil {
			_ = first.Process.Kill()
		}
	}
	n.mu.Unlock()
	_ = first.Run() // the error says that it was killed
	if s, ok := first.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("it ended by itself: %v", first.ProcessState)
	}
	n.mu.Lock()
	n.passes = nil
	n.mu.Unlock()
	text, err := os.ReadFile(state)
	var journal struct{ Sum dynamostore.PurgeProgress }
	if err != nil || json.Unmarshal(text, &journal) != nil || journal.Sum.Looked == 0 {
		t.Fatalf("%v; the journal is %s", err, text)
	}
	code, out := n.run(append(purge, "-o", "json")...)
	if code != 0 || !strings.Contains(out, fmt.Sprintf(`"looked": %d,`, records)) { // the number would be larger if the first page were read again
		t.Errorf("it began anew, or failed: %d\n%s", code, out)
	}
	if code, out := n.run("purge", "--all", "--dry-run"); code != 0 || !strings.Contains(out, "0 records would be erased") || !strings.Contains(out, fmt.Sprintf("%d had no answer to erase", records)) {
		t.Errorf("%d\n%s", code, out)
	}
}

func TestO2_InterruptEndsAPurgeInWords(t *testing.T) {
	n := openNight(t)
	for i := range 300 {
		n.pay("alice", fmt.Sprintf("k-%d", i), time.Minute, lambdaidem.Rerun, well)
	}
	cmd := n.command("purge", "--all", "--reason", "r", "--yes", "--rate", "10")
	var out bytes.Buffer
	cmd.Stderr = &out
	asked := make(chan struct{}, 1000)
	n.mu.Lock()
	n.passes = func() { asked <- struct{}{} }
	n.mu.Unlock()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 5 { // wait until the purge has sent five requests
		<-asked
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is checked next
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "Stopped after") {
		t.Errorf("it ended with %d: %s", code, out.String())
	}
}
