package idemtest

import (
	"errors"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Verb names a method of a store. A [Store] records the calls of the method and can make them
// fail.
type Verb string

// Verbs for [Store.Next] and [Store.Always]. Each names a method of lambdaidem.Store, the method
// SaveSteps of lambdaidem.StepStore, or the method Commit of a transaction that a
// lambdaidem.Transactor has begun.
const (
	Acquire   Verb = "acquire"    // takes the lease on a record
	Complete  Verb = "complete"   // stores the result of the handler
	Release   Verb = "release"    // gives up the lease after an attempt without effect
	Get       Verb = "get"        // reads a record without its lease, as a waiting duplicate does
	SaveSteps Verb = "save_steps" // stores the results of the handler's steps
	Commit    Verb = "commit"     // stores the result together with the writes that the handler enlisted
)

// Fault says how a call of a [Store] fails.
type Fault string

// Faults for [Store.Next] and [Store.Always]. [Refuse] returns further faults.
const (
	// None passes the call on to the inner store.
	None Fault = ""
	// LoseRequest fails the call without passing it on. The error leaves open whether the
	// call was applied, so the guard must assume that it may have been.
	LoseRequest Fault = "the request is lost"
	// LoseReply passes the call on, discards its result and returns an error. Like the error
	// of LoseRequest, this error leaves open whether the call was applied.
	LoseReply Fault = "the reply is lost"
	// Hang blocks the call until its context ends, and then fails it without passing it on.
	// Give the handler a context with a deadline, such as the context that [Invocation]
	// returns.
	Hang Fault = "it hangs"
	// KillBefore kills the simulated process just before the call reaches the store. The handler
	// must run inside [Crash], which simulates the process.
	KillBefore Fault = "the process dies before it"
	// KillAfter passes the call on, and kills the simulated process before the call returns. The
	// handler must run inside [Crash].
	KillAfter Fault = "the process dies after it"
)

// refused is the prefix of the faults that Refuse returns; the reason follows it.
const refused = "refused: "

// Refuse returns a fault that makes a call of the store fail with the given reason. The call does
// not reach the inner store, and its error says that it was not applied. For example, Refuse with
// lambdaidem.ReasonThrottled acts like a throttled table.
func Refuse(reason lambdaidem.Reason) Fault { return Fault(refused + string(reason)) }

// refusal returns the reason of a fault made by Refuse. It reports false for other faults.
func (f Fault) refusal() (lambdaidem.Reason, bool) {
	reason, ok := strings.CutPrefix(string(f), refused)
	return lambdaidem.Reason(reason), ok
}

// check panics if v or f is not a value that this package defines, which is a mistake in the
// test.
func (f Fault) check(v Verb) {
	switch v {
	case Acquire, Complete, Release, Get, SaveSteps, Commit:
	default:
		panic("idemtest: a store has no verb " + string(v))
	}
	switch f {
	case None, LoseRequest, LoseReply, Hang, KillBefore, KillAfter:
	default:
		if _, ok := f.refusal(); !ok {
			panic("idemtest: there is no fault " + string(f))
		}
	}
}

// ErrInjected is wrapped by the errors of [LoseRequest], [LoseReply] and [Refuse]. The error
// of [Hang] wraps the context's error instead.
var ErrInjected = errors.New("injected by idemtest")
