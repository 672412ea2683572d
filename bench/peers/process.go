package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
)

// patience is the maximum time to wait for a message of a driver. Every peer gives up its own waits
// and retries sooner.
const patience = 60 * time.Second

// mostClockError is the maximum difference between a driver's clock and the clock that its settings
// ask for. A message that arrives late looks like such a difference.
const mostClockError = 300 * time.Millisecond

// process is a running driver, which is one instance of the guarded function.
type process struct {
	command *exec.Cmd
	stderr  bytes.Buffer // read after done is closed
	done    chan struct{}

	mu    sync.Mutex // guards stdin, last and calls
	stdin io.WriteCloser
	last  int           // the id of the last call
	calls map[int]*call // calls in progress
}

// call is one call of a process.
type call struct {
	process *process
	id      int
	ran     chan struct{} // closed when the handler runs
	answer  chan driver.Answer
	took    time.Duration // duration of the guarded call in the driver; set before the answer is in answer
}

// startProcess starts a driver in the folder dir, and returns when the driver is ready for calls. The
// environment of the driver is that of this process with env, which has the driver's settings. The
// driver's clock must be ahead of this process's by the time ahead; startProcess returns errTooSlow
// if the driver seems to have another clock. onRun is called each time the driver's handler starts
// to run. When ctx is done, the driver is killed.
func startProcess(ctx context.Context, command, env []string, dir string, ahead time.Duration, onRun func()) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, command[0], command[1:]...), done: make(chan struct{}), calls: map[int]*call{}}
	p.command.Dir = dir
	p.command.Env = append(os.Environ(), env...)
	p.command.Stderr = &p.stderr
	p.command.WaitDelay = time.Second
	var err error
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	ready := make(chan time.Duration, 1)
	go func() {
		defer close(p.done)
		p.read(stdout, ready, onRun)
		_ = p.command.Wait() // an error is usual: most drivers are killed
	}()
	select {
	case is := <-ready:
		if off := is - ahead; off.Abs() > mostClockError {
			return nil, errors.Join(fmt.Errorf("%w: the clock of %s is %v ahead, not %v", errTooSlow, command, is, ahead), p.kill())
		}
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%s ended at its start: %s", command, p.stderr.Bytes())
	case <-time.After(patience):
		return nil, errors.Join(fmt.Errorf("%s is not ready after %v", command, patience), p.kill())
	}
}

// read passes the driver's messages on until the driver closes its output.
func (p *process) read(stdout io.Reader, ready chan<- time.Duration, onRun func()) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // the process has ended, or closed its output
		}
		var m driver.Message
		if err := json.Unmarshal(line, &m); err != nil {
			continue // a line of a log
		}
		if m.Ready {
			ready <- time.Until(time.UnixMilli(m.ClockMS))
			continue
		}
		p.mu.Lock()
		c := p.calls[m.ID]
		p.mu.Unlock()
		switch {
		case c == nil:
		case m.Ran:
			onRun()
			close(c.ran)
		case m.Answer != nil:
			c.took = time.Duration(m.TookUS) * time.Microsecond
			c.answer <- *m.Answer
			p.mu.Lock()
			delete(p.calls, m.ID)
			p.mu.Unlock()
		}
	}
}

// send starts a call. left is the time until the invocation's deadline.
func (p *process) send(r driver.Request, left time.Duration, s driver.Script) (*call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	c := &call{process: p, id: p.last, ran: make(chan struct{}), answer: make(chan driver.Answer, 1)}
	p.calls[c.id] = c
	return c, p.write(driver.Message{ID: c.id, Request: &r, LeftMS: int(left.Milliseconds()), Script: s})
}

// resume lets the handler of a call go on.
func (p *process) resume(c *call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.write(driver.Message{ID: c.id, Resume: true})
}

func (p *process) write(m driver.Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = p.stdin.Write(append(line, '\n'))
	return err
}

// kill ends the process with SIGKILL, as a crash does.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// waitRun waits until the handler runs, and then returns true. It returns false if the call is
// answered first.
func (c *call) waitRun() (bool, error) {
	select {
	case <-c.ran:
		return true, nil
	case a := <-c.answer:
		c.answer <- a
		return false, nil
	case <-c.process.done:
		return false, fmt.Errorf("the driver ended: %s", c.process.stderr.Bytes())
	case <-time.After(patience):
		return false, fmt.Errorf("the handler does not run, and the caller has no answer, after %v", patience)
	}
}

// wait waits for the answer.
func (c *call) wait() (driver.Answer, error) {
	select {
	case a := <-c.answer:
		return a, nil
	case <-c.process.done:
		return driver.Answer{}, fmt.Errorf("the driver ended: %s", c.process.stderr.Bytes())
	case <-time.After(patience):
		return driver.Answer{}, fmt.Errorf("the caller has no answer after %v", patience)
	}
}
