package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// mainVariable is the environment variable that makes the test binary run as twice.
const mainVariable = "TWICE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestExitStatus(t *testing.T) {
	good := httptest.NewServer(newBank())
	t.Cleanup(good.Close)
	bad := httptest.NewServer(changed(newBank(), func(_ *http.Request, a *httptest.ResponseRecorder) { a.Header().Del(replayMark) }))
	t.Cleanup(bad.Close)
	for name, tt := range map[string]struct {
		args   []string
		token  string
		status int
		says   string
	}{
		"all as expected": {[]string{"-url", good.URL + "/"}, token, 0, "paid="},
		"not as expected": {[]string{"-url", bad.URL}, token, 1, "are not as expected"},
		"never healthy":   {[]string{"-url", good.URL, "-wait", "1ms"}, "stranger", 1, "/health is not 200 after 1ms"},
		"help":            {[]string{"-h"}, "", 0, "usage: TOKEN=... twice"},
		"an argument":     {[]string{"-url", good.URL, "fast"}, token, 2, `takes no arguments, and got "fast"`},
		"no URL":          {nil, token, 2, "-url has to be"},
		"a path":          {[]string{"-url", "/payments"}, token, 2, "-url has to be"},
		"another scheme":  {[]string{"-url", "ftp://example.com"}, token, 2, "-url has to be"},
		"no token":        {[]string{"-url", good.URL}, "", 2, "TOKEN has to be"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], tt.args...)
			cmd.Env = append(os.Environ(), mainVariable+"=1", "TOKEN="+tt.token, "NO_PROXY=*")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(out), tt.says) {
				t.Errorf("exit status %d, want %d; it said\n%s\nwant %q in it", got, tt.status, out, tt.says)
			}
			if tt.token != "" && strings.Contains(string(out), "Bearer") {
				t.Errorf("it shows the token:\n%s", out)
			}
		})
	}
}

func TestHealthIsAwaited(t *testing.T) {
	var probes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" || probes.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	if err := newClient(server.URL, token).awaitHealth(t.Context(), time.Minute, time.Millisecond); err != nil || probes.Load() != 3 {
		t.Errorf("error %v after %d probes; want none after 3", err, probes.Load())
	}
	probes.Store(-1 << 40)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := newClient(server.URL, token).awaitHealth(ctx, time.Minute, time.Millisecond); err == nil || !strings.Contains(err.Error(), "the last answer: 503") {
		t.Errorf("the error is %v; want the 503", err)
	}
}
