package redelivery

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

const (
	// timeout is the function's timeout. A batch must fit into it on a busy machine. It is
	// short, because the lease of an attempt that died outlasts the timeout.
	timeout = 5 * time.Second
	// maxSkew is small, because all processes share one clock.
	maxSkew = 200 * time.Millisecond
	// minRunTime is the guard's default.
	minRunTime = time.Second
	// patience is the time limit for anything that a test waits for.
	patience = 60 * time.Second

	// sideBySide is the number of tests that run at once. They mostly wait for leases to end.
	sideBySide = 16

	function = "Consumer"
)

// bootstrap is the path of the consumer's binary, which is built like the binaries that are
// deployed.
var bootstrap string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := flag.Set("test.parallel", strconv.Itoa(sideBySide)); err != nil {
		return fail(err)
	}
	folder, err := os.MkdirTemp("", "redelivery")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	bootstrap = filepath.Join(folder, "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./consumer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("building the consumer: %w\n%s", err, out))
	}
	return m.Run()
}

// world holds one function, its tables, and a source that delivers messages to the function.
type world struct {
	source   source
	emulator *emulator.Emulator
	client   *dynamodb.Client
	ledger   Ledger
	records  string

	sent   []Message
	places map[string]int

	mu         sync.Mutex
	deliveries []Delivery
	kills      int
}

// newWorld starts a function for these messages, with more variables in its environment.
func newWorld(t *testing.T, s source, sent []Message, more map[string]string) *world {
	t.Helper()
	server := ddblocal.ForTest(t)
	w := &world{source: s, client: server.Client(), sent: sent, places: map[string]int{}, records: "records-" + rand.Text()}
	w.ledger = Ledger{Client: w.client, Table: "ledger-" + rand.Text()}
	for i, m := range sent {
		if err := m.Valid(); err != nil {
			t.Fatal(err)
		}
		w.places[m.Name] = i
	}
	for _, table := range []string{w.records, w.ledger.Table} {
		if err := dynamostore.CreateTable(t.Context(), w.client, table); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{SourceVariable: string(s.kind), RecordsVariable: w.records, LedgerVariable: w.ledger.Table, SkewVariable: maxSkew.String()}
	for name, value := range more {
		env[name] = value
	}
	log := &logbook{}
	sam := &template.Template{AccountID: "000000000000", Functions: []*template.Function{{
		LogicalID: function, Name: "consumer", Handler: "bootstrap", MemoryMB: 128, Timeout: timeout, Environment: env, Role: w.role(),
	}}}
	var err error
	w.emulator, err = emulator.Start(t.Context(), emulator.Options{
		Template:    sam,
		Binary:      func(string) string { return bootstrap },
		Endpoint:    guarded(t, sam, server.Endpoint(), log),
		AccessKeyID: iam.AccessKeyID,
		Log:         log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.emulator.Close(); err != nil {
			t.Errorf("close the emulator: %v", err)
		}
		if t.Failed() {
			t.Logf("what the function logged:\n%s", log)
		}
	})
	return w
}

// role returns a role with the permissions that docs/deploy.md lists for the table of records,
// and those that the ledger needs.
func (w *world) role() template.Role {
	statement := func(table string, actions ...string) template.Statement {
		return template.Statement{Effect: "Allow", Actions: actions, Resources: []string{"arn:aws:dynamodb:us-east-1:000000000000:table/" + table}}
	}
	return template.Role{Name: "ConsumerRole", Statements: []template.Statement{
		statement(w.records, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
		statement(w.ledger.Table, "dynamodb:BatchGetItem", "dynamodb:UpdateItem"),
	}}
}

// guarded returns an endpoint of DynamoDB that refuses what the function's role does not allow.
// The test fails at its end if anything was refused.
func guarded(t *testing.T, sam *template.Template, endpoint string, log *logbook) string {
	t.Helper()
	checker, err := iam.New(sam)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := checker.Start(iam.DynamoDB, endpoint, ddblocal.DummyCredential, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
		for _, use := range checker.Uses() {
			if !use.Allowed {
				t.Errorf("the function was refused %s on %s", use.Request.Action, use.Request.Resource)
			}
		}
	})
	return proxy.URL()
}

// deliver invokes the function with one event that has these messages, and adds the delivery to
// the books. It is safe for concurrent use.
func (w *world) deliver(t *testing.T, names ...string) Delivery {
	t.Helper()
	batch, places, nameOf := make([]idemtest.Message, len(names)), make([]int, len(names)), map[string]string{}
	for i, name := range names {
		place := w.places[name]
		m := w.sent[place]
		batch[i], places[i] = idemtest.Message{ID: name, Group: m.Group, Body: text(t, m), Receives: i + 1}, place
		nameOf[w.source.identifier(batch[i], place)] = name
	}
	d := Delivery{Batch: names, Before: w.counts(t, names), Began: time.Now()}
	result, err := w.emulator.Invoke(t.Context(), function, []byte(text(t, w.source.event(batch, places))))
	if err != nil {
		t.Errorf("invoke: %v", err)
		return d
	}
	d.Request, d.Ended = result.RequestID, time.Now()
	w.source.read(&d, result, nameOf)
	d.After = w.counts(t, names)
	if _, d.Left, err = w.ledger.Arrived(t.Context(), d.Request); err != nil {
		t.Error(err)
	}
	// On a slow machine, an invocation that ends just before its deadline has no time to write d.Left.
	if nearDeadline := d.Ended.Sub(d.Began) > timeout-minRunTime; !d.Lost && d.Left <= 0 && !nearDeadline {
		t.Errorf("the invocation %s of %v did not say how much of its time was left", d.Request, names)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deliveries = append(w.deliveries, d)
	return d
}

// deliverAll delivers a batch. If the source is single, it delivers one event for each message.
// It returns the messages that the source must redeliver.
func (w *world) deliverAll(t *testing.T, names ...string) (again []string) {
	t.Helper()
	if !w.source.single {
		return w.source.again(w.deliver(t, names...))
	}
	for _, name := range names {
		again = append(again, w.source.again(w.deliver(t, name))...)
	}
	return again
}

// settle redelivers messages as the source would, until none is left. A queue makes a message
// visible only after the lease of a dead attempt has ended. Streams, topics and buses redeliver
// at once.
func (w *world) settle(t *testing.T, names ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(names) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%v come again and again for %v", names, patience)
		}
		if w.source.kind == SQS {
			w.awaitLeases(t)
		}
		names = w.deliverAll(t, names...)
	}
}

// awaitLeases waits until no lease is left in the table of records.
func (w *world) awaitLeases(t *testing.T) {
	t.Helper()
	eventually(t, "no lease is left", func() bool {
		out, err := w.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &w.records, ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		var rows []struct {
			Status string `dynamodbav:"status"`
			Ends   int64  `dynamodbav:"in_progress_expiration"`
		}
		if err := attributevalue.UnmarshalListOfMaps(out.Items, &rows); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Status == "INPROGRESS" && r.Ends > time.Now().UnixMilli() {
				return false
			}
		}
		return true
	})
}

func (w *world) counts(t *testing.T, names []string) map[string]Count {
	t.Helper()
	counts, err := w.ledger.Counts(t.Context(), names...)
	if err != nil {
		t.Error(err)
	}
	return counts
}

// books returns the books of all deliveries. No delivery may be in progress.
func (w *world) books(t *testing.T) Books {
	t.Helper()
	counts, order, err := w.ledger.Everything(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return Books{Ordered: w.source.ordered, Sent: w.sent, Deliveries: slices.Clone(w.deliveries), Counts: counts, Order: order,
		Kills: w.kills, Lease: timeout + maxSkew, MinRunTime: minRunTime}
}

// audit fails the test if the audit finds a breach.
func (w *world) audit(t *testing.T) {
	t.Helper()
	r := w.books(t).Audit()
	t.Log(r)
	if len(r.Findings) > 0 {
		t.Errorf("the audit found %d breaches of the contract", len(r.Findings))
	}
}

// wantRuns checks how often the handler of each message began.
func (w *world) wantRuns(t *testing.T, want map[string]int) {
	t.Helper()
	counts, _, err := w.ledger.Everything(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range w.sent {
		if got := len(counts[m.Name].Runs); got != want[m.Name] {
			t.Errorf("%s ran %d times, want %d", m.Name, got, want[m.Name])
		}
	}
}

// busy returns the processes with an invocation that has reached the consumer's own code.
func (w *world) busy(t *testing.T) []emulator.Process {
	t.Helper()
	var all []emulator.Process
	for _, p := range w.emulator.Processes(function) {
		if p.RequestID == "" {
			continue
		}
		arrived, _, err := w.ledger.Arrived(t.Context(), p.RequestID)
		if err != nil {
			t.Error(err)
		}
		if arrived {
			all = append(all, p)
		}
	}
	return all
}

// awaitRun waits until the handler of a message has begun at least n times.
func (w *world) awaitRun(t *testing.T, name string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s runs for the %dth time", name, n), func() bool { return len(w.counts(t, []string{name})[name].Runs) >= n })
}

func (w *world) open(t *testing.T, name string) {
	t.Helper()
	if err := w.ledger.Open(t.Context(), name); err != nil {
		t.Error(err)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// eventually waits until holds returns true. It fails the test if patience runs out.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// logbook is a log that can be read while the function writes to it.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
