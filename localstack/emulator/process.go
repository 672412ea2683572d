package emulator

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// supervise becomes the function by exec, so that the function has the process
// id that was started, and leaves a watcher behind: a shell that reads from a
// pipe that only the emulator can write to. When the emulator ends, however it
// ends, the read ends too and the watcher kills the process group. The watcher
// is a member of that group, so the group's id can't be reused while it lives.
// $$ is the function's process id in the subshell too (POSIX, "Special
// Parameters").
const supervise = `(trap '' HUP INT QUIT TERM; read -r _ <&3; kill -KILL -$$) </dev/null >/dev/null 2>&1 &
exec "$0" 3<&-`

// State says what a process is doing.
type State string

// The states of a process, in the order of its life; it goes to and fro between
// Idle and Busy.
const (
	Starting State = "starting" // has not asked for its first invocation
	Idle     State = "idle"     // waits for an invocation
	Busy     State = "busy"     // has an invocation, one at least, or has answered and not asked for the next one
	Leaving  State = "leaving"  // takes nothing more, as one of several workers hung up; it may have invocations
)

// Process is a snapshot of one live process, for tests that disturb it.
type Process struct {
	PID       int
	State     State
	RequestID string // of the current invocation, the latest where there are several; empty: none
	TraceID   string // of the same invocation; the AWS SDKs send it along as X-Amzn-Trace-Id
	Started   time.Time
	Served    int // invocations that it was given

	// RequestIDs are those of all current invocations, in the order in which the
	// runtime took them. One that timed out in a process of several slots (see
	// EMULATOR.md) stays among them until its worker asks for its next.
	RequestIDs []string

	process *process
}

// Signal sends a signal to the function itself, say SIGKILL, SIGSTOP or
// SIGCONT. It returns os.ErrProcessDone if the process is gone; it never
// reaches another process that got the same id since.
func (p Process) Signal(signal os.Signal) error { return p.process.command.Process.Signal(signal) }

// process is one running bootstrap with its Runtime API. It has as many slots
// as its runtime has workers: pool.slots, which is one unless the function runs
// with AWS_LAMBDA_MAX_CONCURRENCY. Its fields below mu change under mu.
type process struct {
	pool    *pool
	command *exec.Cmd
	started time.Time
	leash   *os.File // the pipe's writing end, see supervise
	output  *output
	api     *http.Server
	work    chan *invocation // to whichever worker of the runtime calls next
	ready   chan struct{}    // closed when the runtime asks for its first invocation
	leaving chan struct{}    // closed when a worker of several hung up: the process takes nothing more
	exited  chan struct{}    // closed when the process is gone

	free int // slots that nobody has; changes under pool.mu

	mu        sync.Mutex
	isReady   bool
	isLeaving bool
	waiting   int           // workers that wait in their next call
	running   []*invocation // taken by the runtime, and its worker's next call has not come; the latest last
	late      bool          // an invocation timed out, the process lives on for KillDelay
	served    int
	initError []byte // what the runtime posted to init/error
	killed    bool   // by us
	exit      string // how it ended, once exited is closed
}

// startProcess starts a bootstrap and its Runtime API, on a port of its own
// as every Lambda environment has. The caller must call wait.
func startProcess(p *pool) (*process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a port for the Runtime API: %w", err)
	}
	watched, leash, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a pipe: %w", err), listener.Close())
	}
	logs, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a pipe: %w", err), listener.Close(), watched.Close(), leash.Close())
	}
	command := exec.Command("/bin/sh", "-c", supervise, p.binary)
	command.Dir = filepath.Dir(p.binary)
	command.Env = environment(p, listener.Addr().String())
	command.Stdout, command.Stderr = stdout, stdout
	command.ExtraFiles = []*os.File{watched} // file descriptor 3
	// A group of its own: Ctrl-C in a terminal reaches the emulator alone,
	// and a kill reaches whatever the function started.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = command.Start()
	_ = watched.Close() // both are the child's now
	_ = stdout.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", p.binary, err), listener.Close(), leash.Close(), logs.Close())
	}
	proc := &process{
		pool:    p,
		command: command,
		started: time.Now(),
		leash:   leash,
		work:    make(chan *invocation),
		ready:   make(chan struct{}),
		leaving: make(chan struct{}),
		exited:  make(chan struct{}),
		output: &output{
			pipe:   logs,
			prefix: fmt.Sprintf("[%s %d] ", p.function.LogicalID, command.Process.Pid),
			log:    p.log,
		},
	}
	proc.api = &http.Server{Handler: runtimeAPI(proc), ReadHeaderTimeout: time.Minute}
	go func() { _ = proc.api.Serve(listener) }() // ends with api.Close
	return proc, nil
}

// wait reaps the process and cleans up what belongs to it.
func (p *process) wait() {
	followed := make(chan struct{})
	go func() { p.output.follow(); close(followed) }()
	err := p.command.Wait()
	// The watcher, and whatever the function started, keep the group's id
	// from being reused until this kill.
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-followed
	_ = p.leash.Close()
	_ = p.api.Close()
	_ = p.output.pipe.Close()

	p.mu.Lock()
	p.exit = "Runtime exited without providing a reason" // exit status 0
	if err != nil {
		p.exit = "Runtime exited with error: " + err.Error()
	}
	var failed []*invocation
	for _, inv := range p.running {
		inv.timeout.Stop()
		if inv.claim() {
			failed = append(failed, inv)
		}
	}
	p.running = nil
	killed := p.killed
	p.mu.Unlock()
	p.observe(ProcessEnded, "", p.exit)
	if !killed && len(failed) == 0 {
		p.pool.log.printf("[%s %d] %s", p.pool.function.LogicalID, p.command.Process.Pid, p.exit)
	}
	for _, inv := range failed {
		p.pool.log.printf("[%s %d] RequestId: %s Error: %s", p.pool.function.LogicalID, p.command.Process.Pid, inv.requestID, p.exit)
		p.answer(inv, inv.failure("Runtime.ExitError", p.exit))
	}
	p.pool.gone(p)
	close(p.exited)
}

// kill ends the process and all that it started.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	// By way of os.Process, which knows whether the id is still ours; wait
	// sees to the rest of the group.
	_ = p.command.Process.Kill()
}

// run gives an invocation to the process; the answer arrives in inv.answered,
// and its slot goes back to the pool by itself. It returns false if the process
// was warm and died, or was about to end, before its runtime took the invocation.
func (p *process) run(inv *invocation) bool {
	cold := false
	select {
	case <-p.ready:
	default:
		cold = true
	}
	initialization := time.NewTimer(p.pool.options.InitTimeout)
	defer initialization.Stop()
	select {
	case <-p.ready:
	case <-p.exited:
		p.answer(inv, p.failedStart(inv))
		return true
	case <-initialization.C:
		p.pool.log.printf("[%s %d] killed: it did not ask for an invocation within %s of its start",
			p.pool.function.LogicalID, p.command.Process.Pid, p.pool.options.InitTimeout)
		p.answer(inv, timedOut(inv, p.pool.options.InitTimeout))
		p.kill()
		return true
	}
	select {
	case p.work <- inv:
		return true
	case <-p.leaving:
		return false
	case <-p.exited:
		if cold {
			p.answer(inv, p.failedStart(inv))
		}
		return cold
	}
}

// failedStart returns the answer of a process that ended before its first
// invocation: what it posted to init/error, or how it exited.
func (p *process) failedStart(inv *invocation) Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := inv.failure("Runtime.ExitError", p.exit)
	if p.initError != nil {
		result.Payload = p.initError
	}
	return result
}

// settle is called by the Runtime API with the runtime's answer. It reports
// whether the invocation was still waiting for one and, if not, whether that is
// because it timed out while its process serves on.
func (p *process) settle(requestID string, result func(*invocation) Result) (known, timedOut bool) {
	p.mu.Lock()
	at := slices.IndexFunc(p.running, func(inv *invocation) bool { return inv.requestID == requestID })
	if at < 0 {
		p.mu.Unlock()
		return false, false
	}
	inv := p.running[at]
	inv.posted = true
	known = inv.claim()
	timedOut = inv.late && p.pool.slots > 1
	p.mu.Unlock()
	p.observe(InvocationAnswered, inv.traceID, "")
	if known {
		p.answer(inv, result(inv))
	}
	return known, timedOut
}

func (p *process) answer(inv *invocation, result Result) {
	result.RequestID = inv.requestID
	took := time.Duration(0)
	if !inv.started.IsZero() {
		took = time.Since(inv.started)
	}
	milliseconds := float64(took.Microseconds()) / 1000
	result.LogTail = p.output.end(inv.requestID, fmt.Sprintf(
		"END RequestId: %s\nREPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %.0f ms\tMemory Size: %d MB\n",
		inv.requestID, inv.requestID, milliseconds, milliseconds, p.pool.function.MemoryMB))
	inv.answered <- result
}

// snapshot describes the process for Processes.
func (p *process) snapshot() Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Process{PID: p.command.Process.Pid, State: Busy, Started: p.started, Served: p.served, process: p}
	for _, inv := range p.running {
		s.RequestIDs = append(s.RequestIDs, inv.requestID)
	}
	switch {
	case !p.isReady:
		s.State = Starting
	case p.isLeaving:
		s.State = Leaving
	case len(p.running) == 0:
		s.State = Idle
	}
	if len(p.running) > 0 {
		latest := p.running[len(p.running)-1]
		s.RequestID, s.TraceID = latest.requestID, latest.traceID
	}
	return s
}
