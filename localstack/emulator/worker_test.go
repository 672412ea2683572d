package emulator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

func TestD1_WorkerThatLeavesItsInvocationIsAnInvalidState(t *testing.T) {
	e, _ := start(t, concurrent(1, 0, "PROBE_RUNTIME=lenient"))
	if kind, _ := functionError(t, invoke(t, e, `{"do":"leave"}`)); kind != "Runtime.InvalidState" {
		t.Errorf("%s, want Runtime.InvalidState", kind)
	}
	if a := ask(t, e); a.Served != 1 || len(e.Processes("Probe")) != 1 {
		t.Errorf("%d served by %d processes, want one by the same", a.Served, len(e.Processes("Probe")))
	}
}

// Which of several invocations a worker has left is not known, so none fails
// before its timeout.
func TestD1_WorkerOfSeveralLeavesItsInvocationToItsTimeout(t *testing.T) {
	e, _ := start(t, concurrent(2, time.Second, "PROBE_RUNTIME=lenient"))
	event, open, _ := gate(t)
	running := later(t, e, event)
	eventually(t, "it runs", func() bool { return slices.Equal(counts(e), []int{1}) })
	if kind, _ := functionError(t, invoke(t, e, `{"do":"leave"}`)); kind != "Sandbox.Timedout" {
		t.Errorf("%s, want Sandbox.Timedout", kind)
	}
	if kind, _ := functionError(t, <-running); kind != "Sandbox.Timedout" {
		t.Errorf("%s, want Sandbox.Timedout", kind)
	}
	open()
}

// A worker that gives up what is late has its slot back, once it asks for more.
// One that asks for the first time has nothing to give up.
func TestD1_WorkerThatLeavesALateInvocationHasItsSlotBack(t *testing.T) {
	second := filepath.Join(t.TempDir(), "second")
	e, _ := start(t, concurrent(2, time.Second, "PROBE_RUNTIME=lenient", "PROBE_SECOND="+second))
	gateFile := filepath.Join(t.TempDir(), "gate")
	left := invoke(t, e, fmt.Sprintf(`{"do":"leave","file":%q}`, gateFile))
	if kind, _ := functionError(t, left); kind != "Sandbox.Timedout" {
		t.Fatalf("%s, want Sandbox.Timedout", kind)
	}
	pid := e.Processes("Probe")[0].PID
	if err := os.WriteFile(second, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, e); a.PID != pid {
		t.Fatalf("process %d, want %d", a.PID, pid)
	}
	if got := held(e); !slices.Equal(got[0], []string{left.RequestID}) {
		t.Errorf("the process has %v, want %s, which still runs", got, left.RequestID)
	}
	if err := os.WriteFile(gateFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slot is free", func() bool { return slices.Equal(counts(e), []int{0}) })
}

// With one slot nothing is as on Managed Instances: who outlives its timeout is
// told as ever that its invocation is not known.
func TestL3_LateAnswerOfOneSlotIsOfAnUnknownInvocation(t *testing.T) {
	e, log := start(t, func(o *emulator.Options) {
		concurrent(1, time.Second, "PROBE_RUNTIME=lenient")(o)
		o.KillDelay = time.Minute
	})
	event, open, _ := gate(t)
	if kind, _ := functionError(t, invoke(t, e, event)); kind != "Sandbox.Timedout" {
		t.Fatalf("%s, want Sandbox.Timedout", kind)
	}
	open()
	eventually(t, "it has asked for more, and is gone", func() bool { return len(e.Processes("Probe")) == 0 })
	if !strings.Contains(log.String(), "refused: 400 ") {
		t.Errorf("the late answer should be refused by 400:\n%s", log)
	}
}
