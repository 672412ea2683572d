package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// countRequests sends the payment and a retry, and notes how many requests each of them sent to
// DynamoDB.
func countRequests(s *stage) error {
	a, err := s.start(function{timeout: relaxed})
	if err != nil {
		return err
	}
	before := s.faults.requests.Load()
	err = s.do("first", a, payment, relaxed, driver.Script{})
	between := s.faults.requests.Load()
	err = errors.Join(err, s.do("retry", a, payment, relaxed, driver.Script{}))
	s.notes = append(s.notes, fmt.Sprintf("requests to DynamoDB: %d for the first, %d for the retry", between-before, s.faults.requests.Load()-between))
	return err
}

// twice sends a request, whose handler follows script, and then a retry.
func twice(first driver.Request, script driver.Script, retry driver.Request) func(*stage) error {
	return func(s *stage) error { return s.pair(first, script, "retry", retry) }
}

// then sends two requests, the second one under the given name.
func then(first driver.Request, name string, second driver.Request) func(*stage) error {
	return func(s *stage) error { return s.pair(first, driver.Script{}, name, second) }
}

func (s *stage) pair(first driver.Request, script driver.Script, name string, second driver.Request) error {
	a, err := s.start(function{timeout: relaxed})
	if err != nil {
		return err
	}
	return errors.Join(s.do("first", a, first, relaxed, script), s.do(name, a, second, relaxed, driver.Script{}))
}

func (s *stage) startTwo(first, second function) (a, b *process, err error) {
	if a, err = s.start(first); err == nil {
		b, err = s.start(second)
	}
	return a, b, err
}

// begin sends the payment, and returns when its handler runs. script must let the handler wait.
func (s *stage) begin(p *process, left time.Duration, script driver.Script) (*sent, error) {
	first, err := s.send("first", p, payment, left, script)
	if err != nil {
		return nil, err
	}
	ran, err := first.waitRun()
	if err == nil && !ran {
		err = errors.New("the handler did not run for the first request")
	}
	return first, err
}

// duplicate sends the payment again while its handler runs. The handler resumes when the duplicate
// has its answer, or after 3 s, because a duplicate may wait for the handler.
func duplicate(f function) func(*stage) error {
	return func(s *stage) error {
		a, err := s.start(f)
		if err != nil {
			return err
		}
		first, err := s.begin(a, relaxed, driver.Script{Hold: true})
		if err != nil {
			return err
		}
		again, err := s.send("duplicate", a, payment, relaxed, driver.Script{})
		if err != nil {
			return err
		}
		select {
		case answer := <-again.answer:
			again.answer <- answer
		case <-time.After(3 * time.Second):
		}
		return errors.Join(a.resume(first.call), s.await(first), s.await(again))
	}
}

// dieRunning kills an instance while the payment's handler runs there: at the deadline if timeout is
// shorter than relaxed, and otherwise at once. It returns another instance.
func (s *stage) dieRunning(timeout time.Duration) (*process, error) {
	a, b, err := s.startTwo(function{timeout: timeout}, function{timeout: timeout})
	if err != nil {
		return nil, err
	}
	if _, err := s.begin(a, timeout, driver.Script{Hold: true}); err != nil {
		return nil, err
	}
	if timeout < relaxed {
		err = s.sleep(timeout)
	}
	return b, errors.Join(err, a.kill())
}

// late lets the first attempt finish after its lease has ended and a retry has been answered. The
// result of the first attempt reaches no caller: its invocation timed out long before.
func late(script driver.Script) func(*stage) error {
	return func(s *stage) error {
		a, b, err := s.startTwo(function{timeout: brief}, function{timeout: brief})
		if err != nil {
			return err
		}
		first, err := s.begin(a, brief, script)
		if err != nil {
			return err
		}
		if err := errors.Join(s.sleep(brief+afterLease), s.do("retry", b, payment, brief, driver.Script{})); err != nil {
			return err
		}
		if err := a.resume(first.call); err != nil {
			return err
		}
		if _, err := first.wait(); err != nil {
			return err
		}
		return s.do("last", b, payment, brief, driver.Script{})
	}
}

// ahead sends the payment to one instance, with the given time until the deadline. While the handler
// runs, ahead sends the payment again, to an instance whose clock is ahead.
func ahead(left time.Duration) func(*stage) error {
	return func(s *stage) error {
		a, b, err := s.startTwo(function{timeout: left}, function{timeout: left, clockAhead: skew})
		if err != nil {
			return err
		}
		began := time.Now()
		first, err := s.begin(a, left, driver.Script{Hold: true})
		if err != nil {
			return err
		}
		again, err := s.send("duplicate", b, payment, left, driver.Script{})
		if err != nil {
			return err
		}
		if _, err := again.waitRun(); err != nil { // a duplicate either runs or is refused
			return err
		}
		if time.Since(began) > time.Second && len(again.answer) == 0 {
			return errTooSlow
		}
		return errors.Join(s.await(again), a.resume(first.call), s.await(first))
	}
}

// lock sends the payment while the fault hits its writes, beginning with the one that locks the
// key. Then it sends a retry without the fault. when is faults.once or faults.every.
func lock(when func(*faults, proxy.Fault), fault proxy.Fault) func(*stage) error {
	return func(s *stage) error {
		a, err := s.start(function{timeout: relaxed})
		if err != nil {
			return err
		}
		when(&s.faults, fault)
		err = s.do("first", a, payment, relaxed, driver.Script{})
		s.faults.pass()
		return errors.Join(err, s.do("retry", a, payment, relaxed, driver.Script{}))
	}
}

// completion sends the payment. Its handler runs without a fault; the fault hits the writes that
// follow, which complete the record. Then completion sends a retry without the fault. when is
// faults.once or faults.every.
func completion(timeout time.Duration, when func(*faults, proxy.Fault), fault proxy.Fault) func(*stage) error {
	return func(s *stage) error {
		a, err := s.start(function{timeout: timeout})
		if err != nil {
			return err
		}
		first, err := s.begin(a, timeout, driver.Script{Hold: true})
		if err != nil {
			return err
		}
		when(&s.faults, fault)
		err = errors.Join(a.resume(first.call), s.await(first))
		s.faults.pass()
		return errors.Join(err, s.do("retry", a, payment, timeout, driver.Script{}))
	}
}

// crashBeforeCompletion kills the process after its handler has returned and the write that
// completes the record has left. That write never reaches the database.
func crashBeforeCompletion(s *stage) error {
	a, b, err := s.startTwo(function{timeout: brief}, function{timeout: brief})
	if err != nil {
		return err
	}
	const account = "alice"
	began := time.Now()
	first, err := s.begin(a, brief, driver.Script{Hold: true, Add: account})
	if err != nil {
		return err
	}
	gate := proxy.HoldRequest()
	s.faults.once(gate.Fault)
	if err := a.resume(first.call); err != nil {
		return err
	}
	select {
	case <-gate.Reached():
	case <-time.After(patience):
		return errors.New("no completion was sent")
	}
	err = a.kill()
	gate.Drop()
	s.faults.pass()
	err = errors.Join(err, s.sleep(time.Until(began.Add(brief+afterLease))), s.do("retry", b, payment, brief, driver.Script{Add: account}))
	if err != nil {
		return err
	}
	balance, err := s.balance(account)
	s.notes = append(s.notes, balanceIs(balance))
	return err
}
