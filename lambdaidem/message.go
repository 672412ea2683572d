package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// MessageKey is the name under which a sender gives the idempotency key of a message:
//
//   - SQS, SNS: a message attribute, which must have type String
//   - Kafka, RabbitMQ: a header
//   - ActiveMQ: a property
//   - EventBridge: a member of the event's detail, which must be a string
//   - WebSocket APIs: a member of the message's body, which must be a string
const MessageKey = "x-idempotency-key"

// message is a message or stream record of any event source.
type message struct {
	name   string      // identifies the message in the response, such as the itemIdentifier of SQS
	source string      // ARN of the queue, topic or stream, or a similar name for EventBridge and Kafka; the default of BatchOptions.Operation
	group  string      // messages of one group must run in order; "" if order does not matter
	sent   key         // the idempotency key that the sender gave, such as an attribute named MessageKey
	id     string      // the id that the source gave, the same in each delivery
	body   []byte      // the body or detail
	parts  []string    // values that the fingerprint covers besides the body, such as the group or an SNS subject
	form   []string    // names of the values in parts, and of the envelopes that were unwrapped; see payload.form
	attrs  []attribute // message attributes, headers or properties
}

// key is the idempotency key that a sender gave with a message. given is false if there is
// none. err says why the key is invalid.
type key struct {
	text  string
	given bool
	err   error
}

// attribute is a message attribute of SQS or SNS, a header of Kafka or RabbitMQ, or a property of
// ActiveMQ. Headers and properties that are text have type String.
type attribute struct{ name, dataType, value string }

// attribute adds a message attribute. If its name is MessageKey, ignoring case, attribute
// also sets the message's key. The key is invalid if the attribute is not of type String, or
// if there are two such attributes.
func (m *message) attribute(name, dataType, value string) {
	m.attrs = append(m.attrs, attribute{name, dataType, value})
	if !strings.EqualFold(name, MessageKey) {
		return
	}
	twice := m.sent.given
	m.sent = key{text: value, given: true}
	custom, isText := strings.CutPrefix(dataType, "String")
	switch {
	case twice:
		m.sent.err = fmt.Errorf("the message has %s twice", MessageKey)
	case !isText || custom == ".Array" || custom != "" && custom[0] != '.':
		m.sent.err = fmt.Errorf("%s has type %q; it must be String", MessageKey, dataType)
	}
}

// payload returns what the fingerprint of a message covers: the body, the values in m.parts,
// and the attributes that the parameter named lists. All of these are the same in every
// delivery.
//
// payload also sets p.form to the names of the covered values. The form of a message changes
// if a deployment lists other attributes, or if the message arrives by another path, such as
// through SNS with raw message delivery. The fingerprint then changes too, although the
// message may be the same. So fingerprints with different forms don't prove that two messages
// are different.
func (m *message) payload(named []string) (p payload, parts []string) {
	isNamed := func(a attribute) bool {
		return slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, a.name) })
	}
	var counted []attribute
	for _, a := range m.attrs {
		if isNamed(a) {
			counted = append(counted, a)
		}
	}
	// The attributes come from a map, in random order. The sort is stable, so that an
	// attribute of the SQS message stays before one of the same name in an SNS envelope.
	slices.SortStableFunc(counted, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	parts = slices.Clone(m.parts)
	for _, a := range counted {
		parts = append(parts, a.name, a.dataType, a.value)
	}
	var form []byte
	for _, part := range m.form {
		form = appendPart(form, part)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(named))) {
		form = appendPart(form, strings.ToLower(name))
	}
	return payload{body: m.body, json: true, form: string(form)}, parts
}

// messageWork implements the interface "work" for one message: it runs the message's
// handler.
type messageWork struct {
	g       *Guard
	attempt *attempt // the attempt that runs the handler; nil if it runs unguarded
	fn      func(context.Context) error
	ran     bool // the handler has been called
	err     error
}

// run calls the handler. A panic fails this message, but not the others of its batch.
func (w *messageWork) run(ctx context.Context) {
	w.attempt, w.ran = attemptOf(ctx), true
	returned := false
	defer func() {
		if v := recover(); !returned {
			w.err = safeError(&panicError{v, debug.Stack()})
		}
		w.answered()
	}()
	err := w.fn(ctx)
	returned = true
	w.err = safeError(err)
}

// safeError returns an error that other code can examine without a panic. That is err itself,
// unless a method of err, or of an error that it wraps, panics. Then safeError returns an
// error that describes the panic.
func safeError(err error) (safe error) {
	defer func() {
		if v := recover(); v != nil {
			safe = &panicError{fmt.Sprintf("a method of the error %T: %v", err, v), debug.Stack()}
		}
	}()
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, &absentError{})
		_ = errors.As(err, new(*absentError))
	}
	return err
}

// absentError is an error type that no error contains. safeError searches an error for it
// with errors.Is and errors.As. The search never finds it, so it calls the methods Is, As
// and Unwrap of every wrapped error. safeError thus learns whether one of them panics.
type absentError struct{ _ byte }

func (*absentError) Error() string { return "" }

// answered sets w.err to nil if the handler made that error with the function Answer. Such an
// error stands for a success that returns another value. The handler of a message returns no
// value, so the success is all that counts.
func (w *messageWork) answered() {
	if _, ok := w.err.(*answerError); ok { //nolint:errorlint // an error that wraps an Answer is an ordinary error
		w.err = nil
	}
}

func (*messageWork) replay(decision) error { return nil }

func (w *messageWork) rejected(err error) ending {
	w.err = safeError(err)
	w.answered()
	return w.ending()
}

// ending returns how the handler has ended. The outcome is never OutcomeFailed, so the guard
// never stores an error as the answer, not even an error that the handler marked as Permanent.
// A message that is redriven from a dead-letter queue, after the cause of the error has been
// fixed, must run again.
func (w *messageWork) ending() ending {
	if w.err == nil {
		o, _ := w.attempt.settle(OutcomeSucceeded, success)
		return ending{outcome: o, success: true, encoded: true}
	}
	outcome := OutcomeReleased
	if p := (*panicError)(nil); errors.As(w.err, &p) { // ignore Permanent and other marks on the value of a panic
		if w.g.opts.Policy == Hold {
			outcome = OutcomeUncertain
		}
	} else if o := w.g.outcomeOfError(w.err, ""); o != OutcomeSucceeded && o != OutcomeFailed {
		outcome = o
	}
	outcome, changed := w.attempt.settle(outcome, mayRepeat)
	return ending{outcome: outcome, err: w.err, changed: changed}
}

func (*messageWork) encode() ([]byte, error) { return []byte("{}"), nil }

// panicError is the error of a message whose handler panicked.
type panicError struct {
	value any
	stack []byte
}

// Error includes the stack, which is logged nowhere else.
func (e *panicError) Error() string { return fmt.Sprintf("a panic: %v\n%s", e.value, e.stack) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// reported returns an error that looks to Lambda like the same panic in an unguarded handler:
// it has the type and the text of the panic's value. It has no stack, because the guard logs
// the stack with the text that the method Error returns.
func (e *panicError) reported() error {
	return messages.InvokeResponse_Error{Type: typeName(e.value), Message: fmt.Sprint(e.value)}
}

// takeMessage runs the handler of a message under the guard, as Do does for a function.
func (g *Guard) takeMessage(ctx context.Context, c call, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	d := g.handleCall(ctx, c, w)
	switch {
	case d.refusal != nil:
		refused := refusedDo[struct{}](d.refusal)
		// The writes of an optimistic attempt were dropped, but guarded calls inside its handler were not.
		refused.ran = w.ran && (!g.opts.Optimistic || w.attempt.inner.anyEffect())
		return refused
	case d.replays && d.failure != nil && d.outcome == OutcomeFailed: // an operator has completed the record as failed, so the message may not have been handled
		return refusedDo[struct{}](answerUnavailable(d.failure, d.outcome))
	case d.replays: // an earlier attempt has handled the message
		return done[struct{}]{}
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

// passMessage runs the handler of a message unguarded.
func (g *Guard) passMessage(ctx context.Context, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	merged := attemptOf(ctx) != nil
	if merged { // made inside a guarded handler, whose guard commits the enlisted writes
		w.run(ctx)
	} else if d := g.bypass(ctx, w); d.refusal != nil {
		return refusedDo[struct{}](d.refusal)
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased, merged: merged}
}

var errNoSource = errors.New("the message names no source: set BatchOptions.Operation")
