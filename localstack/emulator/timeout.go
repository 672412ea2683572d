package emulator

import (
	"fmt"
	"time"
)

// take is called by the Runtime API when the runtime takes an invocation: the
// clock of its timeout starts here.
func (p *process) take(inv *invocation) {
	timeout := p.pool.function.Timeout
	p.output.begin(inv.requestID)
	p.mu.Lock()
	defer p.mu.Unlock()
	inv.started = time.Now()
	inv.deadline = inv.started.Add(timeout)
	p.current, p.last, p.given, p.waiting = inv, inv, inv, false
	p.served++
	served := p.served
	p.timeout = time.AfterFunc(timeout, func() { p.expire(inv, served) })
}

// expire ends an invocation at its function's timeout, whether the runtime has
// not answered, or has answered and not asked for the next one.
func (p *process) expire(inv *invocation, served int) {
	p.mu.Lock()
	done := p.served != served || p.waiting
	unanswered := p.current == inv
	if unanswered {
		p.current, p.late = nil, true
	}
	if !done && p.pool.options.KillDelay > 0 && p.last == inv {
		close(inv.finished) // nobody waits for a process that lives on
		p.last = nil
	}
	p.mu.Unlock()
	if done {
		return
	}
	timeout := p.pool.function.Timeout
	if unanswered {
		p.pool.log.printf("[%s %d] Task timed out after %.2f seconds", p.pool.function.LogicalID, p.command.Process.Pid, timeout.Seconds())
		p.answer(inv, timedOut(inv, timeout))
	}
	time.AfterFunc(p.pool.options.KillDelay, p.kill)
}

func timedOut(inv *invocation, after time.Duration) Result {
	return inv.failure("Sandbox.Timedout", fmt.Sprintf("Task timed out after %.2f seconds", after.Seconds()))
}
