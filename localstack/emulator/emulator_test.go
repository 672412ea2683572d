package emulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// bootstrap is the probe function of testdata, built as functions that deploy
// are.
var bootstrap string

func TestMain(m *testing.M) {
	if file := os.Getenv(childVariable); file != "" {
		runChild(file)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	directory, err := os.MkdirTemp("", "emulator")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(directory) }()
	bootstrap = filepath.Join(directory, "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the probe: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	client.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "after the last test:", err)
		return 1
	}
	return code
}

// client is not the default one, so that its connections can be closed.
var client = &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

// syncBuffer is a log that can be read while it is written.
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

func options(t *testing.T, change func(*emulator.Options)) (emulator.Options, *syncBuffer) {
	t.Helper()
	read, err := template.Read("testdata/template.yaml", template.Options{Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	o := emulator.Options{
		Template: read,
		Binary:   func(string) string { return bootstrap },
		Log:      log,
	}
	if change != nil {
		change(&o)
	}
	return o, log
}

func start(t *testing.T, change func(*emulator.Options)) (*emulator.Emulator, *syncBuffer) {
	t.Helper()
	o, log := options(t, change)
	e, err := emulator.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if left := e.Processes("Probe"); len(left) != 0 {
			t.Errorf("after Close there are still %v", left)
		}
		if t.Failed() {
			t.Logf("log:\n%s", log)
		}
	})
	return e, log
}

// eventually waits for a condition that processes bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still waiting, after 10 s, until %s", what)
		}
	}
}

func invoke(t *testing.T, e *emulator.Emulator, event string) emulator.Result {
	t.Helper()
	result, err := e.Invoke(t.Context(), "Probe", []byte(event))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// later runs an invocation beside the test.
func later(t *testing.T, e *emulator.Emulator, event string) <-chan emulator.Result {
	answer := make(chan emulator.Result, 1)
	go func() {
		result, err := e.Invoke(t.Context(), "Probe", []byte(event))
		if err != nil {
			t.Error(err)
		}
		answer <- result
	}()
	return answer
}

type about struct {
	PID       int
	Served    int
	Env       []string
	Dir       string
	Deadline  int64
	RequestID string
	ARN       string
	Custom    map[string]string
	Trace     string
}

func ask(t *testing.T, e *emulator.Emulator) about {
	t.Helper()
	result := invoke(t, e, `{"do":"about"}`)
	var a about
	if err := json.Unmarshal(result.Payload, &a); err != nil {
		t.Fatalf("%v in %s", err, result.Payload)
	}
	return a
}

func states(e *emulator.Emulator) []emulator.State {
	var out []emulator.State
	for _, p := range e.Processes("Probe") {
		out = append(out, p.State)
	}
	return out
}

// functionError decodes the payload of a failed invocation.
func functionError(t *testing.T, result emulator.Result) (kind, message string) {
	t.Helper()
	var e struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(result.Payload, &e); err != nil {
		t.Fatalf("%v in %s", err, result.Payload)
	}
	if result.FunctionError != "Unhandled" {
		t.Errorf("FunctionError %q, want Unhandled", result.FunctionError)
	}
	return e.ErrorType, e.ErrorMessage
}

// answer is an HTTP response whose body has been read.
type answer struct {
	StatusCode int
	Header     http.Header
}

// send sends an HTTP request; headers are "Name: value".
func send(t *testing.T, method, url, body string, headers ...string) (answer, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
		} else {
			request.Header.Add(name, value)
		}
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header}, string(read)
}

func TestD1_EnvironmentIsLambdasAndNothingElse(t *testing.T) {
	t.Setenv("SECRET_OF_THE_USER", "x")
	t.Setenv("AWS_PROFILE", "production")
	e, _ := start(t, func(o *emulator.Options) {
		o.Endpoint = "http://127.0.0.1:8000"
		o.Env = map[string]string{"EXTRA": "more"}
	})
	a := ask(t, e)
	env := map[string]string{}
	for _, entry := range a.Env {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	want := map[string]string{
		"AWS_LAMBDA_FUNCTION_NAME": "probe", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128", "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/probe",
		"AWS_REGION": "eu-west-1", "_HANDLER": "bootstrap", "LAMBDA_TASK_ROOT": filepath.Dir(bootstrap),
		"TABLE": "payments", "EXTRA": "more", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8000",
		"AWS_ACCESS_KEY_ID": "local", "PATH": os.Getenv("PATH"),
	}
	for name, value := range want {
		if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
	for _, name := range []string{"SECRET_OF_THE_USER", "AWS_PROFILE"} {
		if value, set := env[name]; set {
			t.Errorf("%s=%s was inherited", name, value)
		}
	}
	if same, err := filepath.EvalSymlinks(filepath.Dir(bootstrap)); err != nil || a.Dir != same {
		t.Errorf("working directory %s, want %s (%v)", a.Dir, same, err)
	}
}

func TestD1_RuntimeAPITellsIDDeadlineARNAndTrace(t *testing.T) {
	e, _ := start(t, nil)
	before := time.Now()
	result := invoke(t, e, `{"do":"about"}`)
	var a about
	if err := json.Unmarshal(result.Payload, &a); err != nil {
		t.Fatal(err)
	}
	if a.RequestID == "" || a.RequestID != result.RequestID {
		t.Errorf("request id %q in the function, %q outside", a.RequestID, result.RequestID)
	}
	if a.ARN != "arn:aws:lambda:eu-west-1:000000000000:function:probe" {
		t.Errorf("ARN %s", a.ARN)
	}
	left := time.UnixMilli(a.Deadline).Sub(before)
	if left < 9*time.Second || left > 20*time.Second {
		t.Errorf("the deadline is %s away, want about the function's 10 s", left)
	}
	if !strings.HasPrefix(a.Trace, "Root=1-") {
		t.Errorf("trace header %q", a.Trace)
	}
}

func TestD1_OneInvocationPerProcessAndWarmReuse(t *testing.T) {
	e, _ := start(t, nil)
	first := ask(t, e)
	second := ask(t, e)
	if first.PID != second.PID || second.Served != 2 {
		t.Errorf("one after the other: processes %d and %d, served %d; want one process", first.PID, second.PID, second.Served)
	}
	if p := e.Processes("Probe"); len(p) != 1 || p[0].PID != first.PID {
		t.Errorf("Processes says %v, the function says %d", p, first.PID)
	}

	const parallel = 4
	gate := filepath.Join(t.TempDir(), "gate")
	var answers []<-chan emulator.Result
	for range parallel {
		answers = append(answers, later(t, e, fmt.Sprintf(`{"do":"until","file":%q}`, gate)))
	}
	busy := func() bool {
		return slices.Equal(states(e), slices.Repeat([]emulator.State{emulator.Busy}, parallel))
	}
	eventually(t, "each invocation has a process", busy)
	ids, traces := map[string]bool{}, map[string]bool{}
	for _, p := range e.Processes("Probe") {
		ids[p.RequestID], traces[p.TraceID] = true, true
	}
	if len(ids) != parallel || len(traces) != parallel {
		t.Errorf("the busy processes show %d request ids and %d trace ids, want %d", len(ids), len(traces), parallel)
	}
	touch(t, gate)
	for _, answer := range answers {
		if result := <-answer; result.FunctionError != "" {
			t.Errorf("failed: %s", result.Payload)
		}
	}
	eventually(t, "all are idle", func() bool {
		return slices.Equal(states(e), slices.Repeat([]emulator.State{emulator.Idle}, parallel))
	})
	// The most recently used one first: it alone serves a single client.
	if a, b := ask(t, e), ask(t, e); a.PID != b.PID {
		t.Errorf("processes %d and %d, want the most recently used one twice", a.PID, b.PID)
	}
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestD1_LimitQueuesOrThrottles(t *testing.T) {
	for _, throttle := range []bool{false, true} {
		t.Run(fmt.Sprintf("throttle=%v", throttle), func(t *testing.T) {
			e, _ := start(t, func(o *emulator.Options) { o.MaxProcesses, o.Throttle = 1, throttle })
			gate := filepath.Join(t.TempDir(), "gate")
			first := later(t, e, fmt.Sprintf(`{"do":"until","file":%q}`, gate))
			eventually(t, "the process is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
			if throttle {
				if _, err := e.Invoke(t.Context(), "Probe", []byte(`{}`)); !errors.Is(err, emulator.ErrTooManyRequests) {
					t.Errorf("error %v, want ErrTooManyRequests", err)
				}
				response, body := send(t, "POST", e.InvokeURL()+"/2015-03-31/functions/probe/invocations", "{}")
				if response.StatusCode != 429 || response.Header.Get("X-Amzn-Errortype") != "TooManyRequestsException" {
					t.Errorf("Invoke API: %d %s", response.StatusCode, body)
				}
			}
			var queued []<-chan emulator.Result
			if !throttle {
				queued = append(queued, later(t, e, `{}`), later(t, e, `{}`))
			}
			touch(t, gate)
			for _, answer := range append(queued, first) {
				if result := <-answer; result.FunctionError != "" {
					t.Errorf("failed: %s", result.Payload)
				}
			}
			if n := len(e.Processes("Probe")); n != 1 {
				t.Errorf("%d processes, want 1", n)
			}
		})
	}
}

func TestD1_TimeoutKillsAndAnswersAsLambda(t *testing.T) {
	e, log := start(t, func(o *emulator.Options) { o.Template.Function("Probe").Timeout = 250 * time.Millisecond })
	pid := ask(t, e).PID
	began := time.Now()
	result := invoke(t, e, `{"do":"hang"}`)
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("timed out after %s, before the timeout", took)
	}
	kind, message := functionError(t, result)
	if want := "RequestId: " + result.RequestID + " Error: Task timed out after 0.25 seconds"; kind != "Sandbox.Timedout" || message != want {
		t.Errorf("%s: %s\nwant Sandbox.Timedout: %s", kind, message, want)
	}
	line := regexp.MustCompile(fmt.Sprintf(`(?m)^\[Probe %d\] \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z %s Task timed out after 0\.25 seconds$`, pid, result.RequestID))
	if !line.MatchString(log.String()) {
		t.Errorf("no line of the log matches %s:\n%s", line, log)
	}
	eventually(t, "the process is gone", func() bool { return len(e.Processes("Probe")) == 0 })
	if after := ask(t, e); after.PID == pid || after.Served != 1 {
		t.Errorf("after the kill process %d serves its invocation %d, want a new one", after.PID, after.Served)
	}
}

// A stopped process ignores its deadline; the kill must not.
func TestD1_TimeoutKillsAStoppedProcess(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) { o.Template.Function("Probe").Timeout = 400 * time.Millisecond })
	answer := later(t, e, `{"do":"deadline"}`)
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	if err := e.Processes("Probe")[0].Signal(stopSignal); err != nil {
		t.Fatal(err)
	}
	if kind, _ := functionError(t, <-answer); kind != "Sandbox.Timedout" {
		t.Errorf("%s, want Sandbox.Timedout", kind)
	}
	eventually(t, "the process is gone", func() bool { return len(e.Processes("Probe")) == 0 })
}

// L3 needs attempts that outlive their deadline: KillDelay makes them.
func TestL3_KillDelayLetsALateAttemptRunOn(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) {
		o.Template.Function("Probe").Timeout = 200 * time.Millisecond
		o.KillDelay = time.Minute
	})
	gate := filepath.Join(t.TempDir(), "gate")
	result := invoke(t, e, fmt.Sprintf(`{"do":"until","file":%q}`, gate))
	if kind, _ := functionError(t, result); kind != "Sandbox.Timedout" {
		t.Fatalf("%s, want Sandbox.Timedout", kind)
	}
	late := e.Processes("Probe")
	if len(late) != 1 || late[0].State != emulator.Busy || late[0].RequestID != result.RequestID {
		t.Fatalf("the late process is %+v", late)
	}
	if again := ask(t, e); again.PID == late[0].PID {
		t.Error("the late process was given another invocation")
	}
	touch(t, gate)
	eventually(t, "the late attempt has finished", func() bool { _, err := os.Stat(gate + ".done"); return err == nil })
	eventually(t, "the late process is gone", func() bool {
		return !slices.ContainsFunc(e.Processes("Probe"), func(p emulator.Process) bool { return p.PID == late[0].PID })
	})
}

func TestD1_ErrorsOfTheFunction(t *testing.T) {
	e, _ := start(t, nil)
	tests := []struct {
		do, kind, message string
		survives          bool
	}{
		{"error", "errorString", "went wrong", true},
		{"panic", "string", "boom", false},
		{"exit", "Runtime.ExitError", "Runtime exited with error: exit status 7", false},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			pid := ask(t, e).PID
			kind, message := functionError(t, invoke(t, e, fmt.Sprintf(`{"do":%q}`, tt.do)))
			if kind != tt.kind || !strings.HasSuffix(message, tt.message) {
				t.Errorf("%s: %s; want %s: %s", kind, message, tt.kind, tt.message)
			}
			if !tt.survives {
				eventually(t, "the process is gone", func() bool { return len(e.Processes("Probe")) == 0 })
			}
			if after := ask(t, e); (after.PID == pid) != tt.survives {
				t.Errorf("process %d before, %d after; want the same: %v", pid, after.PID, tt.survives)
			}
		})
	}
}

func TestD1_KilledInMidHandlerIsAnExitErrorAndIsReplaced(t *testing.T) {
	e, log := start(t, nil)
	answer := later(t, e, `{"do":"hang"}`)
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	victim := e.Processes("Probe")[0]
	if err := victim.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	result := <-answer
	kind, message := functionError(t, result)
	if kind != "Runtime.ExitError" || !strings.HasSuffix(message, "Runtime exited with error: signal: killed") {
		t.Errorf("%s: %s", kind, message)
	}
	want := fmt.Sprintf("[Probe %d] RequestId: %s Error: Runtime exited with error: signal: killed\n", victim.PID, result.RequestID)
	if strings.Count(log.String(), "Runtime exited") != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q, or names the exit twice:\n%s", want, log)
	}
	eventually(t, "the process is gone", func() bool { return len(e.Processes("Probe")) == 0 })
	if err := victim.Signal(os.Kill); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to the dead process: %v, want os.ErrProcessDone", err)
	}
	if pid := ask(t, e).PID; pid == victim.PID {
		t.Error("the dead process serves")
	}
}

func TestD1_StoppedProcessGoesOnAfterSIGCONT(t *testing.T) {
	e, _ := start(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	answer := later(t, e, fmt.Sprintf(`{"do":"until","file":%q}`, gate))
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	process := e.Processes("Probe")[0]
	if err := process.Signal(stopSignal); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopped", func() bool { return strings.HasPrefix(processState(t, process.PID), "T") })
	touch(t, gate)
	if _, err := os.Stat(gate + ".done"); err == nil {
		t.Error("the stopped process went on")
	}
	if err := process.Signal(continueSignal); err != nil {
		t.Fatal(err)
	}
	if result := <-answer; result.FunctionError != "" {
		t.Errorf("failed: %s", result.Payload)
	}
}

func TestD1_InitErrors(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) { o.Env = map[string]string{"PROBE_INIT": "exit"} })
	for range 2 { // every invocation tries anew
		kind, message := functionError(t, invoke(t, e, `{}`))
		if kind != "Runtime.ExitError" || !strings.HasSuffix(message, "exit status 3") {
			t.Errorf("%s: %s", kind, message)
		}
	}

	slow, _ := start(t, func(o *emulator.Options) {
		o.Env = map[string]string{"PROBE_INIT": "hang"}
		o.InitTimeout = 200 * time.Millisecond
	})
	if kind, message := functionError(t, invoke(t, slow, `{}`)); kind != "Sandbox.Timedout" || !strings.HasSuffix(message, "after 0.20 seconds") {
		t.Errorf("%s: %s", kind, message)
	}
}

func TestD1_PayloadLimits(t *testing.T) {
	e, _ := start(t, nil)
	const request, response = 6 * 1024 * 1024, 6*1024*1024 + 100

	event := `{"raw":"` + strings.Repeat("x", request-10) + `"}`
	if result := invoke(t, e, event); result.FunctionError != "" || len(result.Payload) < request {
		t.Errorf("the largest event came back with %d bytes, error %q", len(result.Payload), result.FunctionError)
	}
	if _, err := e.Invoke(t.Context(), "Probe", []byte(event+" ")); !errors.Is(err, emulator.ErrRequestTooLarge) {
		t.Errorf("error %v, want ErrRequestTooLarge", err)
	}
	if result := invoke(t, e, fmt.Sprintf(`{"do":"big","bytes":%d}`, response)); len(result.Payload) != response {
		t.Errorf("the largest answer has %d bytes, want %d", len(result.Payload), response)
	}
	kind, message := functionError(t, invoke(t, e, fmt.Sprintf(`{"do":"big","bytes":%d}`, response+1)))
	want := "Response payload size (6291557 bytes) exceeded maximum allowed payload size (6291556 bytes)."
	if kind != "Function.ResponseSizeTooLarge" || message != want {
		t.Errorf("%s: %s", kind, message)
	}
}

func TestD1_LogHasAPrefixAndATail(t *testing.T) {
	e, log := start(t, nil)
	result := invoke(t, e, `{"do":"log"}`)
	pid := e.Processes("Probe")[0].PID
	if want := fmt.Sprintf("[Probe %d] to stdout\n", pid); !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log)
	}
	tail := string(result.LogTail)
	for _, want := range []string{"START RequestId: " + result.RequestID, "to stdout\n", "to stderr, no line end\n", "END RequestId: ", "REPORT RequestId: "} {
		if !strings.Contains(tail, want) {
			t.Errorf("the tail lacks %q:\n%s", want, tail)
		}
	}
	if next := invoke(t, e, `{}`); strings.Contains(string(next.LogTail), "to stdout") {
		t.Errorf("the next invocation's tail has the first one's lines:\n%s", next.LogTail)
	}
}

func TestD1_CloseWaitsForInvocationsAndRefusesNewOnes(t *testing.T) {
	e, _ := start(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	answer := later(t, e, fmt.Sprintf(`{"do":"until","file":%q}`, gate))
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	eventually(t, "new invocations are refused", func() bool {
		_, err := e.Invoke(t.Context(), "Probe", []byte(`{"do":"about"}`))
		return errors.Is(err, emulator.ErrClosed)
	})
	select {
	case err := <-closed:
		t.Fatalf("Close returned (%v) before the invocation", err)
	default:
	}
	touch(t, gate)
	if result := <-answer; result.FunctionError != "" {
		t.Errorf("failed: %s", result.Payload)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestD1_EndOfTheContextEndsEverythingAtOnce(t *testing.T) {
	o, _ := options(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	e, err := emulator.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	answer := later(t, e, `{"do":"hang"}`)
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	cancel()
	if kind, _ := functionError(t, <-answer); kind != "Runtime.ExitError" {
		t.Errorf("%s, want Runtime.ExitError", kind)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestD1_CallerWhoGivesUpDoesNotStopTheFunction(t *testing.T) {
	e, _ := start(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := e.Invoke(ctx, "Probe", fmt.Appendf(nil, `{"do":"until","file":%q}`, gate))
		gaveUp <- err
	}()
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	touch(t, gate)
	eventually(t, "the function has finished", func() bool { _, err := os.Stat(gate + ".done"); return err == nil })
}

func TestD1_BadOptionsSayWhatToDo(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	touch(t, plain)
	tests := []struct {
		name   string
		change func(*emulator.Options)
		want   string
	}{
		{"no template", func(o *emulator.Options) { o.Template = nil }, "Options.Template is missing"},
		{"no binaries", func(o *emulator.Options) { o.Binary = nil }, "Options.Binary is missing"},
		{"no binary", func(o *emulator.Options) { o.Binary = func(string) string { return "" } }, "function Probe: Options.Binary returned no path"},
		{"not built", func(o *emulator.Options) { o.Binary = func(string) string { return "nowhere/bootstrap" } }, "bootstrap is missing, build it first"},
		{"not executable", func(o *emulator.Options) { o.Binary = func(string) string { return plain } }, "is not an executable file"},
		{"another machine's", func(o *emulator.Options) { o.Binary = func(string) string { return foreign(t) } }, "is built for linux/"},
		{"another machine's, by a Makefile", func(o *emulator.Options) { o.Binary = func(string) string { return foreign(t) } },
			"its Makefile's target has to take GOOS and GOARCH as variables"},
		{"negative limit", func(o *emulator.Options) { o.MaxProcesses = -1 }, "can't be negative"},
		{"every interface", func(o *emulator.Options) { o.Addr = ":0" }, "refusing to listen"},
		{"every interface, in words", func(o *emulator.Options) { o.Addr = "0.0.0.0:0" }, "it does not verify tokens"},
		{"another host", func(o *emulator.Options) { o.Addr = "192.0.2.1:3000" }, "refusing to listen"},
		{"no port", func(o *emulator.Options) { o.Addr = "127.0.0.1" }, "is not host:port"},
		{"one route twice", func(o *emulator.Options) {
			f := o.Template.Function("Probe")
			f.Routes = append(f.Routes, f.Routes[0])
		}, "route POST /payments is given twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, _ := options(t, tt.change)
			e, err := emulator.Start(t.Context(), o)
			if err == nil {
				_ = e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestD1_SecondEmulatorOnOnePortIsAnError(t *testing.T) {
	e, _ := start(t, nil)
	o, _ := options(t, func(o *emulator.Options) { o.Addr = strings.TrimPrefix(e.URL(), "http://") })
	second, err := emulator.Start(t.Context(), o)
	if err == nil {
		_ = second.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "is another one running there?") {
		t.Errorf("error %v", err)
	}
}

func TestD1_StartSaysLoudlyThatTokensAreNotVerified(t *testing.T) {
	log := &syncBuffer{}
	start(t, func(o *emulator.Options) { o.Log, o.Progress = io.Discard, log })
	for _, want := range []string{
		"WARNING: Api: tokens are NOT VERIFIED",
		"GET /mine, GET /scoped",
		"WARNING: Rest: tokens are NOT VERIFIED",
		"Probe: event Queue (SQS) is not emulated",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}
