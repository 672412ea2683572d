package emulator_test

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

// childVariable makes the test binary an emulator of its own, for the test
// that kills it: it names the bootstrap.
const childVariable = "EMULATOR_TEST_CHILD"

// runChild starts one idle, one busy and one stopped process, prints their ids
// as a JSON list and never ends by itself.
func runChild(binary string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	read, err := template.Read("testdata/template.yaml", template.Options{})
	fail(err)
	read.Function("Probe").Timeout *= 100
	e, err := emulator.Start(context.Background(), emulator.Options{
		Template: read, Binary: func(string) string { return binary },
	})
	fail(err)
	gate := filepath.Join(filepath.Dir(binary), "gate"+strconv.Itoa(os.Getpid()))
	events := []string{`{"do":"hang"}`, `{"do":"hang"}`, fmt.Sprintf(`{"do":"until","file":%q}`, gate)}
	finished := make(chan struct{}, len(events))
	for _, event := range events {
		go func() {
			_, err := e.Invoke(context.Background(), "Probe", []byte(event))
			fail(err)
			finished <- struct{}{}
		}()
	}
	wait := func(want ...emulator.State) {
		for !slices.Equal(want, sorted(states(e))) {
			runtime.Gosched()
		}
	}
	wait(emulator.Busy, emulator.Busy, emulator.Busy)
	fail(os.WriteFile(gate, nil, 0o600))
	<-finished
	wait(emulator.Busy, emulator.Busy, emulator.Idle)
	var ids []int
	for _, p := range e.Processes("Probe") {
		if p.State == emulator.Busy && len(ids) == 0 {
			fail(p.Signal(stopSignal))
		}
		ids = append(ids, p.PID)
	}
	list, err := json.Marshal(ids)
	fail(err)
	fmt.Println(string(list))
	select {}
}

func sorted(states []emulator.State) []emulator.State {
	slices.Sort(states)
	return states
}

func TestD1_ProcessesDieWithAKilledEmulator(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+bootstrap)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []int
	if err := json.NewDecoder(out).Decode(&ids); err != nil {
		t.Fatalf("the child emulator said nothing: %v", err)
	}
	if len(ids) != 3 {
		t.Fatalf("processes %v, want three", ids)
	}
	for _, id := range ids {
		if !alive(t, id) {
			t.Errorf("process %d does not live before the kill, so the test proves nothing", id)
		}
		// The id must be the function's own, not a shell's.
		if command := ps(t, "command=", id); !strings.Contains(command, bootstrap) || strings.Contains(command, "/bin/sh") {
			t.Errorf("process %d is %q", id, command)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // says that it was killed
	for _, id := range ids {
		eventually(t, fmt.Sprintf("process %d is gone", id), func() bool { return !alive(t, id) })
	}
}

// ps asks for one column of one process; nothing if it is gone.
func ps(t *testing.T, column string, id int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", column, "-p", strconv.Itoa(id)).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("ps: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func processState(t *testing.T, id int) string { t.Helper(); return ps(t, "stat=", id) }

// alive does not count a zombie: whether it is reaped depends on the system's
// first process.
func alive(t *testing.T, id int) bool {
	t.Helper()
	state := processState(t, id)
	return state != "" && !strings.HasPrefix(state, "Z")
}

// foreign is the probe with another machine written into its header.
func foreign(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bootstrap")
	header := make([]byte, 64)
	copy(header, elf.ELFMAG)
	header[elf.EI_CLASS], header[elf.EI_DATA], header[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	machine := elf.EM_AARCH64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_X86_64
	}
	header[16], header[18], header[20], header[52], header[54], header[58] = byte(elf.ET_EXEC), byte(machine), 1, 64, 56, 64
	if err := os.WriteFile(file, header, 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}
