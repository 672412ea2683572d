package emulator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// pool holds the processes of one function.
type pool struct {
	function *template.Function
	slots    int // of each process: how many invocations it has at a time
	binary   string
	options  Options
	log      *lockedWriter

	mu        sync.Mutex
	all       []*process      // live ones, in the order of their start
	reserved  int             // about to be started, each with slots of which one is taken
	idle      []*process      // the most recently used one last
	waiters   []chan *process // closed without a word when the pool closes
	closed    bool            // no new invocations, and none in line
	aborted   bool            // no new processes either
	running   sync.WaitGroup  // invocations
	processes sync.WaitGroup
}

// outcome is what came of an invocation that was not refused at once: a result,
// or ErrClosed of one that was still in line when the pool closed.
type outcome struct {
	result Result
	err    error
}

// start begins an invocation and returns at once. It refuses what Lambda
// refuses before a function runs.
func (p *pool) start(inv *invocation) (<-chan outcome, error) {
	if len(inv.payload) > maxRequestBytes {
		return nil, ErrRequestTooLarge
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.options.Throttle && len(p.idle) == 0 && !p.promised() && len(p.all)+p.reserved >= p.options.MaxProcesses {
		return nil, ErrTooManyRequests
	}
	answer := make(chan outcome, 1) // the caller may have given up
	p.running.Go(func() {
		result, err := p.serve(inv)
		answer <- outcome{result, err}
	})
	return answer, nil
}

// settleWithin bounds how long an answer is held back until its process is free
// again or gone, so that a caller's next invocation finds the process warm. A
// runtime asks for its next invocation right after its answer; one that does
// not is not waited for.
const settleWithin = time.Second

// serve runs an invocation to its answer. No caller's context reaches it: as
// in Lambda, a function runs on when its caller has gone. ErrClosed says that it
// had no process yet when the pool closed.
func (p *pool) serve(inv *invocation) (Result, error) {
	for {
		proc, err := p.acquire()
		if errors.Is(err, ErrClosed) {
			p.log.printf("[%s] %s did not begin: %v", p.function.LogicalID, inv.requestID, err)
			return Result{}, err
		}
		if err != nil {
			p.log.printf("[%s] %v", p.function.LogicalID, err)
			return inv.failure("Runtime.InvalidEntrypoint", err.Error()), nil
		}
		if proc.run(inv) {
			result := <-inv.answered
			select {
			case <-inv.finished:
			case <-proc.exited:
			case <-time.After(settleWithin):
			}
			return result, nil
		}
		// A warm process that died while it was idle fails nobody's
		// invocation: the next process gets it.
	}
}

// acquire takes a slot of the most recently used process that has a free one,
// else starts a process, else waits in line. Of a pool that closes nobody gets
// anything: what was not begun is not begun any more.
func (p *pool) acquire() (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if last := len(p.idle) - 1; last >= 0 {
		proc := p.idle[last]
		proc.free--
		if proc.free == 0 {
			p.idle = p.idle[:last]
		}
		p.mu.Unlock()
		return proc, nil
	}
	if !p.promised() && len(p.all)+p.reserved < p.options.MaxProcesses {
		p.reserved++
		p.mu.Unlock()
		return p.launch()
	}
	turn := make(chan *process, 1)
	p.waiters = append(p.waiters, turn)
	p.mu.Unlock()
	proc, ok := <-turn
	switch {
	case !ok:
		return nil, ErrClosed
	case proc != nil:
		return proc, nil
	default:
		return p.launch() // the turn is a reserved place, not a process
	}
}

// promised tells whether a process that is about to be started will have a slot
// for one more in line: such an invocation must not start another one.
func (p *pool) promised() bool { return len(p.waiters) < p.reserved*(p.slots-1) }

// launch starts a process in a reserved place.
func (p *pool) launch() (*process, error) {
	p.mu.Lock()
	aborted := p.aborted
	p.mu.Unlock()
	proc, err := (*process)(nil), ErrClosed
	if !aborted {
		proc, err = startProcess(p)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved--
	if err != nil {
		p.passPlace()
		return nil, err
	}
	p.all = append(p.all, proc)
	p.processes.Go(proc.wait)
	if p.aborted {
		proc.kill()
	}
	for range p.slots - 1 { // the first is the caller's
		p.offer(proc)
	}
	return proc, nil
}

// release is called when a process asks for its next invocation.
func (p *pool) release(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offer(proc)
}

// offer gives a free slot to the next one in line, or keeps it.
func (p *pool) offer(proc *process) {
	if len(p.waiters) > 0 {
		turn := p.waiters[0]
		p.waiters = p.waiters[1:]
		turn <- proc
		return
	}
	proc.free++
	p.idle = append(p.withoutIdle(proc), proc)
}

func (p *pool) withoutIdle(proc *process) []*process {
	return slices.DeleteFunc(p.idle, func(other *process) bool { return other == proc })
}

// gone is called when a process has ended; the next one in line gets its
// place.
func (p *pool) gone(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.DeleteFunc(p.all, func(other *process) bool { return other == proc })
	p.idle = p.withoutIdle(proc)
	p.passPlace()
}

func (p *pool) passPlace() {
	if len(p.waiters) > 0 && len(p.all)+p.reserved < p.options.MaxProcesses {
		turn := p.waiters[0]
		p.waiters = p.waiters[1:]
		p.reserved++
		turn <- nil
	}
}

func (p *pool) snapshot() []Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Process, 0, len(p.all))
	for _, proc := range p.all {
		out = append(out, proc.snapshot())
	}
	return out
}

// close refuses new invocations and those in line, waits for those in progress until
// ctx ends, at most for p.longest, then kills every process and returns when all
// of them are gone.
func (p *pool) close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	for _, turn := range p.waiters {
		close(turn)
	}
	p.waiters = nil
	bound := time.NewTimer(p.longest())
	p.mu.Unlock()
	defer bound.Stop()
	finished := make(chan struct{})
	go func() { p.running.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
	case <-bound.C:
	}
	p.mu.Lock()
	p.aborted = true
	for _, proc := range p.all {
		proc.kill()
	}
	p.mu.Unlock()
	<-finished
	p.processes.Wait()
}

// longest returns the time after which no invocation can be in progress: that of a start
// where there is one, the timeout, and a moment to be taken and answered in. One
// that has a slot and no worker who takes it would go on for ever, as its clock
// does not start. The caller has p.mu.
func (p *pool) longest() time.Duration {
	longest := p.function.Timeout + settleWithin
	starting := func(proc *process) bool { return proc.snapshot().State == Starting }
	if p.reserved > 0 || slices.ContainsFunc(p.all, starting) {
		longest += p.options.InitTimeout
	}
	return longest
}
