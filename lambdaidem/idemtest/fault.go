package idemtest

import (
	"errors"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Verb is one of a store's.
type Verb string

// The verbs of a lambdaidem.Store, that of a lambdaidem.StepStore, and that of a
// lambdaidem.Transactor's transactions.
const (
	Acquire   Verb = "acquire"    // takes the lease
	Complete  Verb = "complete"   // stores the answer
	Release   Verb = "release"    // gives the lease back: no effect happened
	Get       Verb = "get"        // reads, while a duplicate waits
	SaveSteps Verb = "save_steps" // stores the result of a step
	Commit    Verb = "commit"     // stores the answer, with what the handler enlisted
)

// Fault is what becomes of one call of a [Store].
type Fault string

// The faults. [Refuse] makes more.
const (
	// None lets the call through.
	None Fault = ""
	// LoseRequest: the call did not happen, but the caller can't know.
	LoseRequest Fault = "the request is lost"
	// LoseReply: the call happened, but the caller can't know.
	LoseReply Fault = "the reply is lost"
	// Hang: the call does not happen, and gives up when its context ends. Give
	// the handler a context with a deadline: see [Invocation].
	Hang Fault = "it hangs"
	// KillBefore: the process dies before the call reaches the store. Make the call
	// inside of [Crash].
	KillBefore Fault = "the process dies before it"
	// KillAfter: the call happens, and the process dies before the reply.
	KillAfter Fault = "the process dies after it"
)

const refused = "refused: "

// Refuse returns the fault of a call that surely did not happen, for a reason. With
// lambdaidem.ReasonThrottled, say, it is what a busy table does.
func Refuse(reason lambdaidem.Reason) Fault { return Fault(refused + string(reason)) }

func (f Fault) refusal() (lambdaidem.Reason, bool) {
	reason, ok := strings.CutPrefix(string(f), refused)
	return lambdaidem.Reason(reason), ok
}

// check panics on what a test can't have meant.
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

// ErrInjected is what the errors of faults are caused by.
var ErrInjected = errors.New("injected by idemtest")
