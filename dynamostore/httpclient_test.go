//go:build linux

package dynamostore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestHTTPClient_IsTheSDKsButForIdleConnections(t *testing.T) {
	transport := HTTPClient().GetTransport()
	if transport.IdleConnTimeout != 50*time.Second || transport.TLSClientConfig.MinVersion == 0 || transport.MaxIdleConnsPerHost == 0 {
		t.Errorf("the transport is %+v", transport)
	}
}

// Many concurrent requests share 100 connections, and later requests use the same connections
// again.
func TestHTTPClient_OpensAHundredConnectionsAndKeepsThem(t *testing.T) {
	const connections, requests = 100, 1000
	var opened, arrived atomic.Int64
	var full atomic.Pointer[chan struct{}] // closed when the server handles as many requests as there may be connections
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		all := *full.Load()
		if arrived.Add(1) == connections {
			close(all)
		}
		<-all
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := HTTPClient()
	for _, n := range []int{requests, connections} {
		all := make(chan struct{})
		full.Store(&all)
		arrived.Store(0)
		var done sync.WaitGroup
		for range n {
			done.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
		done.Wait()
		// net/http replaces a connection whose writer is late (Go issue 7569), so allow a few more.
		if got := opened.Load(); got < connections || got > connections+10 {
			t.Errorf("%d connections after %d requests at once; want %d", got, n, connections)
		}
	}
}

// These environment variables tell the child process to be frozen.
const (
	frozenEndpoint = "LAMBDAIDEM_TEST_FROZEN_ENDPOINT"
	frozenIdle     = "LAMBDAIDEM_TEST_FROZEN_IDLE"
)

// beFrozen makes a request, is frozen by its parent, and makes another request.
func beFrozen(t *testing.T) {
	idle, err := time.ParseDuration(os.Getenv(frozenIdle))
	if err != nil {
		t.Fatal(err)
	}
	s := New(dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv(frozenEndpoint)),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:  HTTPClient().WithTransportOptions(func(t *http.Transport) { t.IdleConnTimeout = idle }),
	}), "test", func(o *Options) { o.AttemptTimeout = time.Minute }) // so long that the test fails if a try waits for it
	if w := s.Warm(t.Context()); w.Err != nil {
		t.Fatal(w.Err)
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), claim)
	failure := (*lambdaidem.StoreError)(nil)
	fmt.Printf("answered %v ambiguous %v\n", err, errors.As(err, &failure) && !failure.NotApplied)
	os.Exit(0) // without closing its connections
}

// lossy is a listener whose connections can be dropped.
type lossy struct {
	net.Listener
	mu    sync.Mutex
	conns []*lossyConn
}

type lossyConn struct {
	net.Conn
	silent atomic.Bool // data that is written to a connection no longer arrives
}

func (l *lossy) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, &lossyConn{Conn: c})
	return l.conns[len(l.conns)-1], nil
}

func (l *lossy) accepted() []*lossyConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns
}

func (c *lossyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.silent.Load() {
			return n, err
		}
	}
}

// While a process is frozen, its connection is reset, or dropped without a sign. The first request
// after the freeze then opens a new connection, and none fails.
func TestX8_AFrozenProcessUsesNoConnectionThatWasDropped(t *testing.T) {
	if os.Getenv(frozenEndpoint) != "" {
		beFrozen(t)
		return
	}
	for name, c := range map[string]struct {
		idle time.Duration
		drop func(*lossyConn)
	}{
		"reset": {time.Minute, func(c *lossyConn) {
			_ = c.Conn.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}},
		"silently": {50 * time.Millisecond, func(c *lossyConn) { c.silent.Store(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "{}")
			}))
			listener := &lossy{Listener: server.Listener}
			server.Listener = listener
			server.Start()
			defer server.Close()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestX8_AFrozenProcessUsesNoConnectionThatWasDropped$") //nolint:gosec // the child runs this test again
			child.Env = append(os.Environ(), frozenEndpoint+"="+server.URL, frozenIdle+"="+c.idle.String())
			in, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var complaints bytes.Buffer
			child.Stderr = &complaints
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			if line, err := lines.ReadString('\n'); line != "ready\n" {
				t.Fatalf("the process says %q, %v, %s", line, err, &complaints)
			}
			idleSince := time.Now()
			if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			for !isStopped(t, child.Process.Pid) || time.Since(idleSince) < 2*c.idle && c.idle < time.Second {
			}
			if n := len(listener.accepted()); n != 1 {
				t.Fatalf("%d connections before the freeze", n)
			}
			c.drop(listener.accepted()[0])
			if err := child.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			woken := time.Now()
			if _, err := io.WriteString(in, "\n"); err != nil {
				t.Fatal(err)
			}
			line, err := lines.ReadString('\n')
			if took := time.Since(woken); line != "answered <nil> ambiguous false\n" || took > 30*time.Second {
				t.Errorf("after %v the process says %q, %v, %s", took, line, err, &complaints)
			}
			if n := len(listener.accepted()); n != 2 {
				t.Errorf("%d connections; want one new one", n)
			}
			_, _ = io.Copy(io.Discard, lines)
			if err := child.Wait(); err != nil {
				t.Errorf("the process ended with %v: %s", err, &complaints)
			}
		})
	}
}

// isStopped reports whether a signal has stopped the process.
func isStopped(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) //nolint:gosec // the pid is that of this test's child
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "T")
}
