package operate_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/metrics"
	"github.com/lambdaidem/toolkit/localstack/stack"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestMain(m *testing.M) {
	if isAWS() {
		os.Exit(runAWS(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// shortTimeout is the timeout of the functions whose attempts die here. A lease ends MaxSkew after
// the timeout, and idem counts it as dead 2 s later. The timeout is long enough for a cold start
// on a busy machine.
const shortTimeout = 5 * time.Second

// world holds the local stack, the page, and the values that the reader of the page has seen.
type world struct {
	page    *page
	stack   *stack.Stack
	between *proxy.Proxy // between the functions and the database
	fault   atomic.Pointer[func(*proxy.Request) proxy.Fault]

	folder         string // where the reader works
	env            []string
	exports        []string // of the page's beginning
	toReal, toPage *strings.Replacer
	moments        *strings.Replacer // replaces the page's times of a restore; nil before it
	shown          map[shown]string  // values that commands have printed
	opened         map[string]bool   // titles of the sections that have been read

	counted metrics.Collector // the functions' metrics, which logFile does not have
}

// Names on the page. The test replaces some of them by its own, as every reader does.
const (
	pageTable    = "IdempotencyTable"
	pageEndpoint = "http://127.0.0.1:3001"
	setUpTitle   = "Before the night" // the section that installs and exports
	logFile      = "up.log"           // the file that the page uses for the functions' log
	cloudFile    = "cloudwatch.log"   // the same log with the lines of metrics, as in CloudWatch
	pageQueue    = "NotificationsDeadQueue.fifo"
	pageMoment   = "2026-11-23T03:00:00Z" // the point in time to which the page restores a table
	pageUntil    = "2026-11-23T04:00:00Z" // when the page's functions begin to use that table
)

func openWorld(t *testing.T) *world {
	t.Helper()
	database := ddblocal.ForTest(t)
	t.Cleanup(database.CloseIdleConnections)
	t.Setenv(ddblocal.EndpointVariable, database.Endpoint())
	w := &world{page: readPage(t), folder: t.TempDir(), shown: map[shown]string{}, opened: map[string]bool{}}
	log, err := os.OpenFile(filepath.Join(w.folder, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := os.OpenFile(filepath.Join(w.folder, cloudFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w.stack, err = stack.Start(t.Context(), stack.Options{
		Progress: io.Discard, FunctionLog: io.MultiWriter(w.counted.Log(log, false), cloud),
		Change: func(sam *template.Template) {
			sam.Function("TransfersFunction").Timeout = shortTimeout
			sam.Function("PaymentsFunction").Timeout = shortTimeout
		},
		Emulator: func(o *emulator.Options) {
			if w.between, err = proxy.Start(o.Endpoint, w.choose); err != nil {
				t.Fatal(err)
			}
			o.Endpoint = w.between.URL()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, close := range []func() error{w.stack.Stop, w.between.Close, log.Close, cloud.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Logf("the log:\n%s", w.log(t))
		}
	})
	for _, user := range []string{"alice", "bob", "erin"} {
		if err := w.stack.OpenAccount(t.Context(), user, "EUR", 100_000); err != nil {
			t.Fatal(err)
		}
	}
	install, exports := setUp(t, w.page.section(t, setUpTitle))
	table := w.stack.Table("IdempotencyTable")
	w.exports, w.env = exports, append(clean(tools(t, install)), elasticmq.EndpointVariable+"="+w.stack.SQS().Endpoint())
	w.toReal = strings.NewReplacer(pageQueue, w.queue(t, "NotificationsDeadQueue"), pageEndpoint, w.stack.Database().Endpoint(), pageTable, table,
		`"TransfersTable"`, strconv.Quote(w.stack.Table("TransfersTable")), `"AccountsTable"`, strconv.Quote(w.stack.Table("AccountsTable")))
	w.toPage = strings.NewReplacer(w.stack.Database().Endpoint(), pageEndpoint, table, pageTable, w.stack.Table("AccountsTable"), "AccountsTable")
	return w
}

// queue returns the name of a queue of the template.
func (w *world) queue(t *testing.T, logicalID string) string {
	t.Helper()
	for _, queue := range w.stack.Template().Queues {
		if queue.LogicalID == logicalID {
			return queue.Name
		}
	}
	t.Fatalf("the template has no queue %s", logicalID)
	return ""
}

// choose returns the current fault for a request of a function to the database.
func (w *world) choose(r *proxy.Request) proxy.Fault {
	if fault := w.fault.Load(); fault != nil {
		return (*fault)(r)
	}
	return nil
}

// log returns what the functions have logged so far.
func (w *world) log(t *testing.T) string {
	t.Helper()
	return readFile(t, filepath.Join(w.folder, logFile))
}

// request is a client's POST request with an idempotency key.
type request struct {
	path, user, key, body string
	headers               map[string]string
}

func payment(user, key string, headers ...string) request {
	return request{"/payments", user, key, `{"amount":1250,"currency":"EUR"}`, pairs(headers)}
}

func transfer(key, reference string, headers ...string) request {
	return request{"/transfers", "alice", key, `{"to":"bob","amount":700,"currency":"EUR","reference":"` + reference + `"}`, pairs(headers)}
}

func pairs(all []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(all); i += 2 {
		m[all[i]] = all[i+1]
	}
	return m
}

// answer is the response to a client's request.
type answer struct {
	status   int
	replayed bool
	body     string
}

// send sends a request and returns the answer.
func (w *world) send(t *testing.T, r request) answer {
	t.Helper()
	a, err := w.sendOne(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *world) sendOne(ctx context.Context, r request) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.stack.URL()+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+stack.Token(r.user))
	req.Header.Set("Idempotency-Key", r.key)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("X-Idempotency-Replayed") == "true", string(bytes.TrimSpace(body))}, err
}

// sendAside sends a request in a goroutine. The channel receives the answer.
func (w *world) sendAside(t *testing.T, r request) <-chan answer {
	t.Helper()
	ended := make(chan answer, 1)
	go func() {
		a, err := w.sendOne(t.Context(), r)
		if err != nil {
			a.body = err.Error()
		}
		ended <- a
	}()
	return ended
}

// again returns the same request without the headers that made the first one fail.
func (r request) again() request {
	r.headers = nil
	return r
}

// expect checks the status of an answer, whether it is a replay, and that it contains a word.
func (a answer) expect(t *testing.T, status int, replayed bool, word string) {
	t.Helper()
	if a.status != status || a.replayed != replayed || !strings.Contains(a.body, word) {
		t.Errorf("the client got %+v; want %d with %q, replayed: %t", a, status, word, replayed)
	}
}

// await repeats a command until its output has a word the given number of times.
func (s *shell) await(command, word string, times int) string {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, out := s.run(command)
		if strings.Count(out, word) >= times {
			return out
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("after 20 s %q has not printed %q %d times:\n%s", command, word, times, out)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		}
	}
}
