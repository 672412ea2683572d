package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database counts what it carries out.
type database struct {
	*httptest.Server
	carriedOut atomic.Int32
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	d := &database{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d.carriedOut.Add(1)
		w.Header().Set("X-Amz-Crc32", "7")
		_, _ = io.WriteString(w, `{"echo":`+string(body)+`}`)
	}))
	t.Cleanup(d.Close)
	return d
}

// through starts a proxy that does one thing to every call.
func through(t *testing.T, d *database, fault proxy.Fault) (send func() (int, string, error)) {
	t.Helper()
	p, err := proxy.Start(d.URL, func(r *proxy.Request) proxy.Fault {
		if r.Operation != "PutItem" || r.TraceID != "Root=1-2-3" || string(r.Body) != `{"a":1}` {
			t.Errorf("the request is %s %s %s", r.Operation, r.TraceID, r.Body)
		}
		return fault
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL(), strings.NewReader(`{"a":1}`))
		if err != nil {
			return 0, "", err
		}
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		r.Header.Set("X-Amzn-Trace-Id", "Root=1-2-3")
		resp, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close() //nolint:errcheck // it is read to its end
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
}

func TestFaultsDoWhatTheirNamesSay(t *testing.T) {
	tests := map[string]struct {
		fault      proxy.Fault
		carriedOut int32
		status     int    // 0: the caller gets an error
		body       string // part of it
	}{
		"nil":            {nil, 1, 200, `{"echo":{"a":1}}`},
		"Pass":           {proxy.Pass, 1, 200, `{"echo":{"a":1}}`},
		"LoseRequest":    {proxy.LoseRequest, 0, 0, ""},
		"LoseReply":      {proxy.LoseReply, 1, 0, ""},
		"CutReplyShort":  {proxy.CutReplyShort, 1, 0, ""},
		"FailAfterWrite": {proxy.FailAfterWrite, 1, 500, "#InternalServerError"},
		"Throttle":       {proxy.Throttle, 0, 400, "#ProvisionedThroughputExceededException"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			status, body, err := through(t, d, tt.fault)()
			if tt.status == 0 && err == nil || tt.status != 0 && (err != nil || status != tt.status || !strings.Contains(body, tt.body)) {
				t.Errorf("the caller gets %d %s, %v; want %d %s", status, body, err, tt.status, tt.body)
			}
			if n := d.carriedOut.Load(); n != tt.carriedOut {
				t.Errorf("the database carried out %d requests; want %d", n, tt.carriedOut)
			}
		})
	}
}

// A trace is told, in this order, what becomes of a call.
func TestTraceIsToldWhatBecomesOfACall(t *testing.T) {
	for name, tt := range map[string]struct {
		fault proxy.Fault
		told  []string
	}{
		"Pass":           {proxy.Pass, []string{"delivered 200", "answered 200, gone: false"}},
		"LoseRequest":    {proxy.LoseRequest, []string{"cut"}},
		"LoseReply":      {proxy.LoseReply, []string{"delivered 200", "cut"}},
		"CutReplyShort":  {proxy.CutReplyShort, []string{"delivered 200", "cut"}},
		"FailAfterWrite": {proxy.FailAfterWrite, []string{"delivered 200", "answered 500, gone: false"}},
		"Throttle":       {proxy.Throttle, []string{"answered 400, gone: false"}},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan []string, 1)
			_, _, _ = through(t, newDatabase(t), func(c *proxy.Call) {
				var told []string
				c.Trace = &proxy.Trace{
					Deliver: func(deliver func() (proxy.Reply, error)) (proxy.Reply, error) {
						reply, err := deliver()
						told = append(told, fmt.Sprintf("delivered %d", reply.Status))
						return reply, err
					},
					Answer: func(reply proxy.Reply, gone bool) {
						told = append(told, fmt.Sprintf("answered %d, gone: %t", reply.Status, gone))
					},
					Cut: func() { told = append(told, "cut") },
				}
				tt.fault(c)
				over <- told
			})()
			if told := <-over; !slices.Equal(told, tt.told) {
				t.Errorf("it was told %q; want %q", told, tt.told)
			}
		})
	}
}

// A caller whose request is swallowed waits until it gives up.
func TestSwallowedRequestIsWaitedFor(t *testing.T) {
	d, over := newDatabase(t), make(chan struct{})
	p, err := proxy.Start(d.URL, func(*proxy.Request) proxy.Fault {
		return func(c *proxy.Call) {
			defer close(over)
			proxy.Swallow(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // the test is over
	ctx, giveUp := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer giveUp()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) || d.carriedOut.Load() != 0 {
		t.Errorf("the caller gets %v, and %d requests were carried out; want its own deadline, and none", err, d.carriedOut.Load())
	}
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Error("the proxy goes on after its caller has gone")
	}
}

func TestSlowTakesItsTime(t *testing.T) {
	d := newDatabase(t)
	send := through(t, d, proxy.Slow(20*time.Millisecond, 30*time.Millisecond))
	began := time.Now()
	status, _, err := send()
	if took := time.Since(began); err != nil || status != 200 || took < 50*time.Millisecond || d.carriedOut.Load() != 1 {
		t.Errorf("the caller gets %d, %v after %v; want 200 after 50 ms", status, err, took)
	}
}

func TestUnreachableDatabaseIsACutConnection(t *testing.T) {
	d := newDatabase(t)
	send := through(t, d, proxy.Pass)
	d.Close()
	if status, body, err := send(); err == nil {
		t.Errorf("the caller gets %d %s; want an error", status, body)
	}
}

type outcome struct {
	status int
	err    error
}

// sendAside sends in the background.
func sendAside(send func() (int, string, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		status, _, err := send()
		done <- outcome{status, err}
	}()
	return done
}

func reached(t *testing.T, g *proxy.Gate) {
	t.Helper()
	select {
	case r := <-g.Reached():
		if r.Operation != "PutItem" {
			t.Errorf("the gate holds %s; want PutItem", r.Operation)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing reached the gate within 10 s")
	}
}

func TestHeldRequestTakesEffectWhenTheGateOpens(t *testing.T) {
	d, g := newDatabase(t), proxy.HoldRequest()
	answer := sendAside(through(t, d, g.Fault))
	reached(t, g)
	if n := d.carriedOut.Load(); n != 0 {
		t.Errorf("the database carried out %d requests before the gate was open", n)
	}
	if reply, err := g.Open(); err != nil || string(reply.Body) != `{"echo":{"a":1}}` {
		t.Errorf("Open = %s, %v", reply.Body, err)
	}
	if got := <-answer; got.err != nil || got.status != 200 || d.carriedOut.Load() != 1 {
		t.Errorf("the caller gets %d, %v; %d requests were carried out", got.status, got.err, d.carriedOut.Load())
	}
}

func TestHeldReplyComesAfterTheEffect(t *testing.T) {
	d, g := newDatabase(t), proxy.HoldReply()
	answer := sendAside(through(t, d, g.Fault))
	reached(t, g)
	if n := d.carriedOut.Load(); n != 1 {
		t.Errorf("the database carried out %d requests; want 1, before the reply is let go", n)
	}
	g.Drop()
	if got := <-answer; got.err == nil {
		t.Errorf("the caller gets %d; want a cut connection", got.status)
	}
}

func TestDroppedRequestNeverArrives(t *testing.T) {
	d, g := newDatabase(t), proxy.HoldRequest()
	answer := sendAside(through(t, d, g.Fault))
	reached(t, g)
	g.Drop()
	if got := <-answer; got.err == nil || d.carriedOut.Load() != 0 {
		t.Errorf("the caller gets %d; %d requests were carried out", got.status, d.carriedOut.Load())
	}
}

// Close runs as a clean-up; goleak would find what it left behind.
func TestCloseEndsWhatIsHeld(t *testing.T) {
	d, g := newDatabase(t), proxy.HoldRequest()
	p, err := proxy.Start(d.URL, func(*proxy.Request) proxy.Fault { return g.Fault })
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	answer := sendAside(func() (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL(), http.NoBody)
		if err != nil {
			return 0, "", err
		}
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		resp, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		return resp.StatusCode, "", resp.Body.Close()
	})
	reached(t, g)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := <-answer; got.err == nil {
		t.Errorf("the caller gets %d; want a cut connection", got.status)
	}
}
