package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// shop is the running project in testdata/shop. Its function is on Managed Instances with four
// slots.
type shop struct {
	*Stack
	log *syncBuffer
}

// syncBuffer is a log that can be read while it is being written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func openShop(t *testing.T, timeout time.Duration) shop {
	t.Helper()
	log := &syncBuffer{}
	s, err := Start(t.Context(), Options{
		Template:    filepath.Join("testdata", "shop", "template.yaml"),
		Parameters:  map[string]string{"Shop": "corner"},
		Env:         map[string]string{"AWS_LAMBDA_MAX_CONCURRENCY": "4"},
		Change:      func(sam *template.Template) { sam.Function("OrdersFunction").Timeout = timeout },
		Progress:    io.Discard,
		FunctionLog: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", log)
		}
	})
	return shop{s, log}
}

type answer struct {
	status   int
	replayed bool
	body     string
}

// made parses an order from a response's body or from a line of the journal.
func made(t *testing.T, text string) (o struct {
	ID, Key, Request, Shop string
	Attempt                int
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return o
}

// order sends an order and returns the response. Each of the headers is "Name: value".
func (s shop) order(t *testing.T, path, key string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(`{"pizzas":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("X-Idempotency-Replayed") == "true", string(body)}
}

// aside sends an order in a new goroutine. The channel receives the response.
func (s shop) aside(t *testing.T, path, key string, headers ...string) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- s.order(t, path, key, headers...) }()
	return got
}

// processes returns the running processes of the shop's function.
func (s shop) processes() []emulator.Process { return s.Emulator().Processes("OrdersFunction") }

// awaitRunning waits until the function has exactly one process, with n invocations.
func (s shop) awaitRunning(t *testing.T, n int) {
	t.Helper()
	await(t, "the process has its invocations", func() bool {
		all := s.processes()
		return len(all) == 1 && len(all[0].RequestIDs) == n
	})
}

// awaitEnd waits until the function has no process any more: a process ends after an answer that
// came too late.
func (s shop) awaitEnd(t *testing.T) {
	t.Helper()
	await(t, "the process of the late attempt has ended", func() bool { return len(s.processes()) == 0 })
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still waiting, after 20 s, until %s", what)
		}
	}
}

// item returns an order from the table, or nil if the table has none with this ID.
func (s shop) item(t *testing.T, id string) map[string]types.AttributeValue {
	t.Helper()
	out, err := s.Database().Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(s.Table("Table")), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// journal returns the lines of a journal, in which attempts record their effects outside the
// table.
func journal(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// All slots of a process share one guard. Duplicates with the same key are still detected by the
// record, as between processes.
func TestG3_DuplicatesInSlotsOfOneProcessRunOnce(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	s := openShop(t, 30*time.Second)
	dir := t.TempDir()
	until, notes := filepath.Join(dir, "until"), filepath.Join(dir, "journal")
	answers := make(chan answer, 4)
	for range cap(answers) {
		go func() { answers <- s.order(t, "/orders", "one", "X-Until: "+until, "X-Journal: "+notes) }()
	}
	for range 3 {
		if got := <-answers; got.status != http.StatusConflict {
			t.Errorf("a duplicate in progress: %d %s, want 409", got.status, got.body)
		}
	}
	touch(t, until)
	first := <-answers
	if first.status != http.StatusCreated || first.replayed {
		t.Fatalf("the one that ran: %+v, want 201", first)
	}
	if again := s.order(t, "/orders", "one"); again.status != http.StatusCreated || !again.replayed || again.body != first.body {
		t.Errorf("a replay: %+v, want %+v", again, first)
	}
	if lines := journal(t, notes); len(lines) != 1 {
		t.Errorf("it ran %d times:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if all := s.processes(); len(all) != 1 || all[0].Served != 5 {
		t.Errorf("the processes are %+v, want one that served 5", all)
	}
}

func TestF1_StateInSlotsBelongsToTheInvocation(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	s := openShop(t, 30*time.Second)
	until := filepath.Join(t.TempDir(), "until")
	answers := map[string]<-chan answer{}
	for _, key := range []string{"a", "b", "c", "d"} {
		answers[key] = s.aside(t, "/orders", key, "X-Until: "+until)
	}
	s.awaitRunning(t, 4)
	ids := s.processes()[0].RequestIDs
	touch(t, until)
	requests := map[string]bool{}
	for key, answer := range answers {
		got := <-answer
		o := made(t, got.body)
		requests[o.Request] = true
		if got.status != http.StatusCreated || o.Key != key || o.Attempt != 1 || o.Shop != "corner" || !slices.Contains(ids, o.Request) {
			t.Errorf("the order %q: %+v, of the invocations %q", key, got, ids)
		}
		if item := s.item(t, o.ID); item["Key"].(*types.AttributeValueMemberS).Value != key {
			t.Errorf("the order %q has the item %v", key, item)
		}
	}
	if len(requests) != 4 {
		t.Errorf("%d invocations made the orders, want 4", len(requests))
	}
}

// docs/deploy.md describes policy Rerun where a timeout doesn't end the attempt: the lease ends
// MaxSkew after the deadline, a retry runs, and the late attempt can't commit anything. But its
// outside effects still happen, after those of the retry.
func TestL3_LateAttemptInASlotCommitsNothing(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	s := openShop(t, 2*time.Second)
	dir := t.TempDir()
	until, notes := filepath.Join(dir, "until"), filepath.Join(dir, "journal")
	if got := s.order(t, "/orders", "late", "X-Until: "+until, "X-Journal: "+notes); got.status != http.StatusInternalServerError {
		t.Fatalf("the timeout: %+v, want 500", got)
	}
	if got := s.order(t, "/orders", "late"); got.status != http.StatusConflict || !strings.Contains(got.body, "idempotency_in_progress") {
		t.Errorf("before the lease is over: %+v, want 409", got)
	}
	var second answer
	await(t, "the lease is over", func() bool {
		second = s.order(t, "/orders", "late", "X-Journal: "+notes)
		return second.status != http.StatusConflict
	})
	done := made(t, second.body)
	if second.status != http.StatusCreated || done.Attempt != 2 {
		t.Fatalf("the retry: %+v, want 201 of attempt 2", second)
	}
	before := s.item(t, done.ID)
	s.awaitRunning(t, 1) // the late attempt, which still runs after the retry
	touch(t, until)
	s.awaitEnd(t)
	if !strings.Contains(s.log.String(), "lease_lost") {
		t.Error("the log should tell of the attempt that was refused")
	}
	if after := s.item(t, done.ID); after["Attempt"].(*types.AttributeValueMemberN).Value != "2" || len(after) != len(before) {
		t.Errorf("the order is %v, was %v", after, before)
	}
	if got := s.order(t, "/orders", "late"); !got.replayed || got.body != second.body {
		t.Errorf("afterwards: %+v, want the replay of %+v", got, second)
	}
	var attempts []int
	for _, line := range journal(t, notes) {
		attempts = append(attempts, made(t, line).Attempt)
	}
	if !slices.Equal(attempts, []int{2, 1}) {
		t.Errorf("outside, attempts %v had their effects; want the retry's, then the late one's", attempts)
	}
}

// docs/deploy.md also describes policy Hold: no retry runs beside the late attempt. Nobody took
// over its record, so the late attempt completes it.
func TestL6_LateAttemptInASlotIsTheOnlyOneUnderHold(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	s := openShop(t, 2*time.Second)
	dir := t.TempDir()
	until, notes := filepath.Join(dir, "until"), filepath.Join(dir, "journal")
	if got := s.order(t, "/held-orders", "held", "X-Until: "+until, "X-Journal: "+notes); got.status != http.StatusInternalServerError {
		t.Fatalf("the timeout: %+v, want 500", got)
	}
	await(t, "the lease is over", func() bool {
		got := s.order(t, "/held-orders", "held", "X-Journal: "+notes)
		if got.status != http.StatusConflict {
			t.Fatalf("while the attempt runs: %+v, want 409", got)
		}
		return strings.Contains(got.body, "idempotency_attempt_abandoned")
	})
	touch(t, until)
	s.awaitEnd(t)
	replay := s.order(t, "/held-orders", "held", "X-Journal: "+notes)
	if replay.status != http.StatusCreated || !replay.replayed || made(t, replay.body).Attempt != 1 {
		t.Errorf("afterwards: %+v, want the replay of attempt 1", replay)
	}
	if lines := journal(t, notes); len(lines) != 1 {
		t.Errorf("outside, there were %d effects:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}
