package emulator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

const concurrencyVariable = "AWS_LAMBDA_MAX_CONCURRENCY"

// concurrent gives the probe so many slots; variables are "NAME=value".
func concurrent(slots int, timeout time.Duration, variables ...string) func(*emulator.Options) {
	return func(o *emulator.Options) {
		o.Env = map[string]string{concurrencyVariable: fmt.Sprint(slots)}
		for _, variable := range variables {
			name, value, _ := strings.Cut(variable, "=")
			o.Env[name] = value
		}
		if timeout > 0 {
			o.Template.Function("Probe").Timeout = timeout
		}
	}
}

// gate returns the event of an invocation that runs until the gate is opened,
// whatever its deadline, and what opens it.
func gate(t *testing.T) (event string, open func(), passed func() bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gate")
	return fmt.Sprintf(`{"do":"until","file":%q}`, file), func() {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, func() bool {
			_, err := os.Stat(file + ".done")
			return err == nil
		}
}

// held are the ids of the current invocations of each process.
func held(e *emulator.Emulator) [][]string {
	var out [][]string
	for _, p := range e.Processes("Probe") {
		out = append(out, p.RequestIDs)
	}
	return out
}

// counts are how many invocations each process has.
func counts(e *emulator.Emulator) []int {
	var out []int
	for _, ids := range held(e) {
		out = append(out, len(ids))
	}
	return out
}

// useAllSlots returns once each worker of the one process has served an
// invocation and asked for its next. Until then, a runtime that stops may stop
// before its last worker has asked at all, and nothing shows that it leaves.
func useAllSlots(t *testing.T, e *emulator.Emulator, slots int) {
	t.Helper()
	var answers []<-chan emulator.Result
	for range slots {
		answers = append(answers, later(t, e, fmt.Sprintf(`{"do":"meet","people":%d}`, slots)))
	}
	for _, answer := range answers {
		decodeAbout(t, <-answer)
	}
	eventually(t, "the process is idle", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Idle}) })
}

// awaitLeaving waits until the one process is to end.
func awaitLeaving(t *testing.T, e *emulator.Emulator) {
	t.Helper()
	eventually(t, "the process leaves", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Leaving}) })
}

func decodeAbout(t *testing.T, result emulator.Result) about {
	t.Helper()
	var a about
	if err := json.Unmarshal(result.Payload, &a); err != nil || result.FunctionError != "" {
		t.Fatalf("%v in %s (%s)", err, result.Payload, result.FunctionError)
	}
	return a
}

// Each invocation waits for the others, so they end only if they are in one
// process at once. All come before the process is there: one is started.
func TestD1_SlotsRunAtOnceInOneProcess(t *testing.T) {
	const slots = 4
	e, _ := start(t, concurrent(slots, 0))
	for range 2 { // cold, then warm
		var answers []<-chan emulator.Result
		for range slots {
			answers = append(answers, later(t, e, `{"do":"meet","people":4}`))
		}
		ids := map[string]bool{}
		for _, answer := range answers {
			result := <-answer
			a := decodeAbout(t, result)
			ids[a.RequestID] = true
			if a.RequestID != result.RequestID {
				t.Errorf("the invocation %s was told that it is %s", result.RequestID, a.RequestID)
			}
			if !slices.Contains(a.Env, concurrencyVariable+"=4") || !slices.Contains(a.Env, "AWS_LAMBDA_INITIALIZATION_TYPE=lambda-managed-instances") {
				t.Errorf("the environment is %v", a.Env)
			}
		}
		if len(ids) != slots || len(e.Processes("Probe")) != 1 {
			t.Errorf("%d invocations in %d processes, want %d in one", len(ids), len(e.Processes("Probe")), slots)
		}
	}
	eventually(t, "the process is idle", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Idle}) })
	if served := e.Processes("Probe")[0].Served; served != 2*slots {
		t.Errorf("it served %d invocations, want %d", served, 2*slots)
	}
}

func TestD1_OneMoreThanTheSlotsStartsASecondProcess(t *testing.T) {
	e, _ := start(t, concurrent(2, 0))
	event, open, _ := gate(t)
	var answers []<-chan emulator.Result
	for _, want := range [][]int{{1}, {2}, {2, 1}, {2, 2}, {2, 2, 1}} {
		answers = append(answers, later(t, e, event))
		eventually(t, fmt.Sprintf("the processes have %v invocations", want), func() bool { return slices.Equal(counts(e), want) })
	}
	open()
	for _, answer := range answers {
		if result := <-answer; result.FunctionError != "" {
			t.Errorf("%s", result.Payload)
		}
	}
}

// The line is for slots, not for processes.
func TestD1_BeyondTheSlotsOfAllProcessesThereIsALine(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) {
		concurrent(2, 0)(o)
		o.MaxProcesses = 1
	})
	event, open, _ := gate(t)
	answers := []<-chan emulator.Result{later(t, e, event), later(t, e, event)}
	eventually(t, "both slots are taken", func() bool { return slices.Equal(counts(e), []int{2}) })
	third := later(t, e, `{"do":"about"}`)
	open()
	for _, answer := range answers {
		<-answer
	}
	if decodeAbout(t, <-third); len(e.Processes("Probe")) != 1 {
		t.Errorf("there are %d processes, want one", len(e.Processes("Probe")))
	}
}

func TestD1_ThrottleCountsSlots(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) {
		concurrent(8, 0)(o)
		o.MaxProcesses, o.Throttle = 1, true
	})
	event, open, _ := gate(t)
	var answers []<-chan emulator.Result
	for range 8 { // while the process is started, too
		answers = append(answers, later(t, e, event))
	}
	eventually(t, "all slots are taken", func() bool { return slices.Equal(counts(e), []int{8}) })
	if _, err := e.Invoke(t.Context(), "Probe", []byte(`{}`)); !errors.Is(err, emulator.ErrTooManyRequests) {
		t.Errorf("a ninth invocation: %v, want ErrTooManyRequests", err)
	}
	open()
	for _, answer := range answers {
		<-answer
	}
}

func TestD1_CrashFailsAllInvocationsOfItsProcess(t *testing.T) {
	e, _ := start(t, concurrent(3, 0))
	event, _, _ := gate(t)
	answers := []<-chan emulator.Result{later(t, e, event), later(t, e, event)}
	eventually(t, "two run", func() bool { return slices.Equal(counts(e), []int{2}) })
	answers = append(answers, later(t, e, `{"do":"exit"}`))
	for _, answer := range answers {
		if kind, message := functionError(t, <-answer); kind != "Runtime.ExitError" || !strings.HasSuffix(message, "exit status 7") {
			t.Errorf("%s: %s, want Runtime.ExitError with exit status 7", kind, message)
		}
	}
	if a := ask(t, e); a.Served != 1 {
		t.Errorf("the next invocation is number %d of its process, want the first of a new one", a.Served)
	}
}

// "Lambda Managed Instances does not enforce timeouts": the caller has its
// answer, and the code runs on.
func TestD1_TimeoutInOneSlotLeavesTheOthersAlone(t *testing.T) {
	const timeout = 2 * time.Second
	e, log := start(t, concurrent(2, timeout, "PROBE_RUNTIME=lenient"))
	event, open, passed := gate(t)
	ask(t, e) // so that it is warm
	began := time.Now()
	result := invoke(t, e, event)
	if kind, message := functionError(t, result); kind != "Sandbox.Timedout" || !strings.HasSuffix(message, "after 2.00 seconds") {
		t.Fatalf("%s: %s, want Sandbox.Timedout", kind, message)
	}
	if took := time.Since(began); took < timeout || took > timeout+900*time.Millisecond {
		t.Errorf("the answer of the timeout came after %s; its slot is not to be waited for", took)
	}
	pid := e.Processes("Probe")[0].PID
	for range 3 { // in the other slot, one after the other
		if a := ask(t, e); a.PID != pid {
			t.Errorf("process %d serves on, want %d", a.PID, pid)
		}
	}
	if got := held(e); len(got) != 1 || !slices.Equal(got[0], []string{result.RequestID}) || passed() {
		t.Fatalf("the processes have %v, want the late invocation %s in its slot", got, result.RequestID)
	}
	// Its slot is not free: of two that come, one needs a process of its own.
	other, openOther, _ := gate(t)
	answers := []<-chan emulator.Result{later(t, e, other), later(t, e, other)}
	eventually(t, "a second process is there", func() bool { return slices.Equal(counts(e), []int{2, 1}) })
	openOther()
	for _, answer := range answers {
		if result := <-answer; result.FunctionError != "" {
			t.Errorf("%s", result.Payload)
		}
	}
	open()
	eventually(t, "the slot is free", func() bool { return passed() && len(held(e)[0]) == 0 })
	if !strings.Contains(log.String(), "refused: 410 ") || !strings.Contains(log.String(), "InvokeTimeout") {
		t.Errorf("the late answer should be refused as late:\n%s", log)
	}
	meeting := `{"do":"meet","people":2}` // both slots serve again
	first := later(t, e, meeting)
	eventually(t, "one waits for another", func() bool { return slices.Equal(slices.Sorted(slices.Values(counts(e))), []int{0, 1}) })
	second := later(t, e, meeting)
	if a, b := decodeAbout(t, <-first), decodeAbout(t, <-second); a.PID != b.PID {
		t.Errorf("they met in processes %d and %d", a.PID, b.PID)
	}
}

// aws-lambda-go ends when an answer is refused: what runs finishes, what waits
// is let go, and the process exits. Nobody's invocation fails of that.
func TestD1_LateAnswerEndsTheGoRuntimeAfterItsInvocations(t *testing.T) {
	e, log := start(t, concurrent(3, 3*time.Second))
	useAllSlots(t, e, 3)
	late, openLate, _ := gate(t)
	if kind, _ := functionError(t, invoke(t, e, late)); kind != "Sandbox.Timedout" {
		t.Fatalf("%s, want Sandbox.Timedout", kind)
	}
	pid := e.Processes("Probe")[0].PID
	event, open, _ := gate(t)
	running := later(t, e, event)
	eventually(t, "another runs beside it", func() bool { return slices.Equal(counts(e), []int{2}) })
	openLate()
	awaitLeaving(t, e)
	if a := ask(t, e); a.PID == pid {
		t.Error("who is to end got another invocation")
	}
	open()
	if result := <-running; result.FunctionError != "" {
		t.Errorf("%s, want the answer of who ran on", result.Payload)
	}
	eventually(t, "the process has ended", func() bool {
		return !slices.ContainsFunc(e.Processes("Probe"), func(p emulator.Process) bool { return p.PID == pid })
	})
	if !strings.Contains(log.String(), "unexpected status code: 410") {
		t.Errorf("the log should have the runtime's reason:\n%s", log)
	}
}

func TestD1_PanicEndsTheProcessAfterItsInvocations(t *testing.T) {
	e, _ := start(t, concurrent(3, 0))
	useAllSlots(t, e, 3)
	event, open, _ := gate(t)
	running := later(t, e, event)
	eventually(t, "it runs", func() bool { return slices.Equal(counts(e), []int{1}) })
	if kind, message := functionError(t, invoke(t, e, `{"do":"panic"}`)); message != "boom" {
		t.Errorf("%s: %s, want the panic", kind, message)
	}
	awaitLeaving(t, e)
	pid := e.Processes("Probe")[0].PID
	if a := ask(t, e); a.PID == pid {
		t.Error("who is to end got another invocation")
	}
	open()
	if result := <-running; result.FunctionError != "" {
		t.Errorf("%s, want the answer of who ran on", result.Payload)
	}
}

func TestD1_TailOfAFailedStartIsWhatItSaid(t *testing.T) {
	e, _ := start(t, concurrent(2, 0, "PROBE_INIT=exit"))
	first, second := later(t, e, `{}`), later(t, e, `{}`)
	for _, result := range []emulator.Result{<-first, <-second} {
		if kind, _ := functionError(t, result); kind != "Runtime.ExitError" || !strings.HasPrefix(string(result.LogTail), "no luck\n") {
			t.Errorf("%s, and the tail\n%s", kind, result.LogTail)
		}
	}
}

// What a process writes belongs to none of its invocations in particular.
func TestD1_LogTailOfSlots(t *testing.T) {
	e, _ := start(t, concurrent(2, 0))
	event, open, _ := gate(t)
	first := later(t, e, event)
	eventually(t, "it runs", func() bool { return slices.Equal(counts(e), []int{1}) })
	second := invoke(t, e, `{"do":"log"}`)
	open()
	other := <-first
	for _, result := range []emulator.Result{other, second} {
		lines := strings.Split(strings.TrimSpace(string(result.LogTail)), "\n")
		if lines[0] != "START RequestId: "+result.RequestID+" Version: $LATEST" ||
			!slices.Contains(lines, "to stdout") || !slices.Contains(lines, "END RequestId: "+result.RequestID) {
			t.Errorf("the tail of %s:\n%s", result.RequestID, result.LogTail)
		}
	}
	if strings.Contains(string(second.LogTail), other.RequestID) || strings.Contains(string(other.LogTail), second.RequestID) {
		t.Error("a platform line of another invocation is in a tail")
	}
}

func TestD1_SlotsComeFromOptionsEnvironmentOrTemplate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*emulator.Options)
		want   string
		slots  int
	}{
		"nothing": {nil, "", 1},
		"the template's CapacityProviderConfig": {func(o *emulator.Options) {
			o.Template.Function("Probe").MaxConcurrency = 2
		}, "2", 2},
		"the function's environment": {func(o *emulator.Options) {
			o.Template.Function("Probe").MaxConcurrency = 2
			o.Template.Function("Probe").Environment[concurrencyVariable] = "3"
		}, "3", 3},
		"the options": {func(o *emulator.Options) {
			o.Template.Function("Probe").Environment[concurrencyVariable] = "3"
			o.Env = map[string]string{concurrencyVariable: "4"}
		}, "4", 4},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := start(t, test.change)
			env := maps.Collect(func(yield func(string, string) bool) {
				for _, variable := range ask(t, e).Env {
					if name, value, _ := strings.Cut(variable, "="); !yield(name, value) {
						return
					}
				}
			})
			if env[concurrencyVariable] != test.want {
				t.Errorf("%s=%q, want %q", concurrencyVariable, env[concurrencyVariable], test.want)
			}
			event, open, _ := gate(t)
			var answers []<-chan emulator.Result
			for i := range test.slots {
				answers = append(answers, later(t, e, event))
				eventually(t, "it runs", func() bool { return slices.Equal(counts(e), []int{i + 1}) })
			}
			answers = append(answers, later(t, e, event))
			eventually(t, "one more has its own process", func() bool { return slices.Equal(counts(e), []int{test.slots, 1}) })
			open()
			for _, answer := range answers {
				<-answer
			}
		})
	}
	for _, value := range []string{"", "0", "-1", "1601", "many"} {
		o, _ := options(t, func(o *emulator.Options) { o.Env = map[string]string{concurrencyVariable: value} })
		if _, err := emulator.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Probe: "+concurrencyVariable+" is \""+value) {
			t.Errorf("Start with %q = %v, want an error that names the function and the variable", value, err)
		}
	}
}

func TestD1_CapacityIsProcessesTimesSlots(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) {
		concurrent(4, 0)(o)
		o.MaxProcesses = 3
	})
	if n := e.Capacity("Probe"); n != 12 {
		t.Errorf("the capacity of 3 processes with 4 slots each is %d; want 12", n)
	}
	if n := e.Capacity("Nobody"); n != 0 {
		t.Errorf("the capacity of a function that is not there is %d; want 0", n)
	}
}
