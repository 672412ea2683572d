package emulator

import (
	"fmt"
	"slices"
	"time"
)

// take is called by the Runtime API when the runtime takes an invocation: the
// clock of its timeout starts here.
func (p *process) take(inv *invocation) {
	timeout := p.pool.function.Timeout
	p.output.begin(inv.requestID)
	p.observe(InvocationTaken, inv.traceID, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	inv.started = time.Now()
	inv.deadline = inv.started.Add(timeout)
	p.waiting--
	p.running = append(p.running, inv)
	p.served++
	inv.timeout = time.AfterFunc(timeout, func() { p.expire(inv) })
}

// expire ends an invocation at its function's timeout. A process with one slot
// is killed, whether its runtime has not answered, or has answered and not asked
// for the next one. One with several lives on, and so does the invocation in its
// slot: "Lambda Managed Instances does not enforce timeouts", says
// "Understanding the Lambda Managed Instances execution environment".
func (p *process) expire(inv *invocation) {
	p.mu.Lock()
	done := !slices.Contains(p.running, inv)
	unanswered := !done && inv.claim()
	kill := !done && p.pool.slots == 1
	if unanswered {
		inv.late = true
		p.late = kill
	}
	if !done && (!kill || p.pool.options.KillDelay > 0) {
		inv.finish() // nobody waits for a process that lives on
	}
	p.mu.Unlock()
	if unanswered {
		p.observe(InvocationTimedOut, inv.traceID, "")
		timeout := p.pool.function.Timeout
		p.pool.log.printf("[%s %d] %s %s Task timed out after %.2f seconds", p.pool.function.LogicalID, p.command.Process.Pid,
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), inv.requestID, timeout.Seconds())
		p.answer(inv, timedOut(inv, timeout))
	}
	if kill {
		time.AfterFunc(p.pool.options.KillDelay, p.kill)
	}
}

func timedOut(inv *invocation, after time.Duration) Result {
	return inv.failure("Sandbox.Timedout", fmt.Sprintf("Task timed out after %.2f seconds", after.Seconds()))
}
