package emulator_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// failing runs an invocation beside the test that is to be refused.
func failing(t *testing.T, e *emulator.Emulator, event string) <-chan error {
	refused := make(chan error, 1)
	go func() {
		_, err := e.Invoke(t.Context(), "Probe", []byte(event))
		refused <- err
	}()
	return refused
}

// closes waits for Close, which has to return within a time.
func closes(t *testing.T, e *emulator.Emulator, within time.Duration) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(within):
		t.Fatalf("Close has not returned within %s", within)
	}
}

// Nothing of them has begun, so nobody need wait for them; what has begun goes on.
func TestD1_CloseRefusesThoseInLineAtOnce(t *testing.T) {
	e, log := start(t, func(o *emulator.Options) { o.MaxProcesses = 1 })
	event, open, _ := gate(t)
	running := later(t, e, event)
	eventually(t, "it is busy", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Busy}) })
	inLine := []<-chan error{failing(t, e, `{"do":"about"}`), failing(t, e, `{"do":"about"}`)}
	eventually(t, "two are in line", func() bool { return e.InLine("Probe") == 2 })
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	for _, refused := range inLine {
		select {
		case err := <-refused:
			if !errors.Is(err, emulator.ErrClosed) {
				t.Errorf("one in line: %v, want ErrClosed", err)
			}
		case <-time.After(2 * time.Second):
			t.Error("one in line waits on")
		}
	}
	if !slices.Equal(states(e), []emulator.State{emulator.Busy}) {
		t.Errorf("the processes are %v, want one that is busy", states(e))
	}
	open()
	if result := <-running; result.FunctionError != "" {
		t.Errorf("the one under way failed: %s", result.Payload)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "did not begin: the emulator is closed"); n != 2 {
		t.Errorf("the log tells of %d that did not begin, want 2", n)
	}
}

// Late attempts give no slot back, and have no clock any more.
func TestD1_CloseEndsThoughEverySlotIsLate(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) {
		concurrent(2, time.Second)(o)
		o.MaxProcesses = 1
	})
	late := []<-chan emulator.Result{later(t, e, `{"do":"hang"}`), later(t, e, `{"do":"hang"}`)}
	for _, answer := range late {
		if kind, _ := functionError(t, <-answer); kind != "Sandbox.Timedout" {
			t.Fatalf("%s, want Sandbox.Timedout", kind)
		}
	}
	refused := failing(t, e, `{"do":"hang"}`)
	eventually(t, "one is in line", func() bool { return e.InLine("Probe") == 1 })
	closes(t, e, 5*time.Second)
	if err := <-refused; !errors.Is(err, emulator.ErrClosed) {
		t.Errorf("the one in line: %v, want ErrClosed", err)
	}
}

// A runtime may have fewer workers than slots: then an invocation has a slot and
// nobody who takes it, and its clock does not start.
func TestD1_CloseEndsThoughNoWorkerTakesAnInvocation(t *testing.T) {
	second := filepath.Join(t.TempDir(), "second") // never written: one worker
	e, _ := start(t, func(o *emulator.Options) {
		concurrent(2, time.Second, "PROBE_RUNTIME=lenient", "PROBE_SECOND="+second)(o)
		o.MaxProcesses = 1
	})
	if kind, _ := functionError(t, invoke(t, e, `{"do":"hang"}`)); kind != "Sandbox.Timedout" {
		t.Fatalf("%s, want Sandbox.Timedout", kind)
	}
	untaken := failing(t, e, `{"do":"about"}`)
	inLine := failing(t, e, `{"do":"about"}`)
	eventually(t, "one has the other slot, one is in line", func() bool { return e.InLine("Probe") == 1 })
	closes(t, e, 5*time.Second)
	for _, refused := range []<-chan error{untaken, inLine} {
		if err := <-refused; !errors.Is(err, emulator.ErrClosed) {
			t.Errorf("one that did not begin: %v, want ErrClosed", err)
		}
	}
}

// What starts has its time to start before its timeout's.
func TestD1_CloseWaitsForAProcessThatStarts(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) {
		o.Env = map[string]string{"PROBE_INIT": "hang"}
		o.InitTimeout = 3 * time.Second
		o.Template.Function("Probe").Timeout = 100 * time.Millisecond
	})
	answer := later(t, e, `{}`)
	eventually(t, "it starts", func() bool { return slices.Equal(states(e), []emulator.State{emulator.Starting}) })
	closes(t, e, 8*time.Second)
	if kind, message := functionError(t, <-answer); kind != "Sandbox.Timedout" || !strings.HasSuffix(message, "after 3.00 seconds") {
		t.Errorf("%s: %s, want the timeout of its start", kind, message)
	}
}
