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

// MessageKey is the message attribute that carries an idempotency key over a queue
// or a topic: of type String. On EventBridge, whose events have no attributes,
// it is a member of the detail.
const MessageKey = "x-idempotency-key"

// message is a message or stream record of any event source.
type message struct {
	name   string // identifies the message in the response of a batch
	source string // the ARN of the queue, topic or stream, if it has one
	group  string // messages of one group must run in order; "" if order does not matter
	sent   key    // the key that the sender gave
	id     string // the id that the source gave, the same in each delivery
	body   []byte
	parts  []string // what the fingerprint covers besides the body and the chosen attributes
	form   []string // what parts has, for payload.form
	attrs  []attribute
}

// key is the key that a sender gave, if any. err says why it is not valid.
type key struct {
	text  string
	given bool
	err   error
}

// attribute is a message attribute.
type attribute struct{ name, dataType, value string }

// attribute adds a message attribute. Like the name of a header, the name of the key's
// attribute matches without case.
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
		m.sent.err = fmt.Errorf("the attribute %s is there twice, in two spellings", MessageKey)
	case !isText || custom == ".Array" || custom != "" && custom[0] != '.':
		m.sent.err = fmt.Errorf("the attribute %s has type %q; it must be String", MessageKey, dataType)
	}
}

// payload returns what the fingerprint of a message covers: the body, the parts that
// the source adds, and the attributes in named. All of it is the same in every
// delivery. A change of named or of the way between sender and handler, such as raw
// message delivery, changes the payload's form.
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
	// attribute of the queue stays before one of the same name in an envelope.
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

// messageWork implements work for the handler of one message.
type messageWork struct {
	g       *Guard
	attempt *attempt // whose handler this is; nil if it runs unguarded
	fn      func(context.Context) error
	err     error
}

// run calls the handler. A panic fails this message, but not the others of its batch.
func (w *messageWork) run(ctx context.Context) {
	w.attempt = attemptOf(ctx)
	returned := false
	defer func() {
		if v := recover(); !returned {
			w.err = sound(&panicError{v, debug.Stack()})
		}
		w.answered()
	}()
	err := w.fn(ctx)
	returned = true
	w.err = sound(err)
}

// sound returns err, unless a method of err, or of an error that it wraps, panics. Then
// sound returns an error that describes the panic, so that code that examines the error
// later does not panic.
func sound(err error) (safe error) {
	defer func() {
		if v := recover(); v != nil {
			safe = &panicError{fmt.Sprintf("a method of the error %T: %v", err, v), debug.Stack()}
		}
	}()
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, &nobodysError{})
		_ = errors.As(err, new(*nobodysError))
	}
	return err
}

// nobodysError is an error that no function returns, so that errors.Is and errors.As
// visit every wrapped error when they search for it.
type nobodysError struct{ _ byte }

func (*nobodysError) Error() string { return "" }

// answered replaces an Answer by success, because a message has no other answer.
func (w *messageWork) answered() {
	if _, ok := w.err.(*answerError); ok { //nolint:errorlint // an error that wraps an Answer is an ordinary error
		w.err = nil
	}
}

func (*messageWork) replay(decision) error { return nil }

func (w *messageWork) rejected(err error) ending {
	w.err = sound(err)
	w.answered()
	return w.ending()
}

// ending returns how the handler ended. Even a permanent failure is never stored: after
// the cause has been fixed, a message that is redriven from a dead-letter queue must
// run.
func (w *messageWork) ending() ending {
	if w.err == nil {
		return ending{outcome: OutcomeSucceeded, success: true, encoded: true}
	}
	outcome := OutcomeReleased
	if p := (*panicError)(nil); errors.As(w.err, &p) { // ignore a mark on the value of a panic
		if w.g.opts.Policy == Hold {
			outcome = OutcomeUncertain
		}
	} else if o := w.g.outcomeOfError(w.err); o != OutcomeSucceeded && o != OutcomeFailed {
		outcome = o
	}
	outcome, changed := w.attempt.settle(outcome, false)
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

// reported returns the panic in the form in which Lambda reports panics of handlers
// that are not guarded. It has no stack, because the stack is in the log.
func (e *panicError) reported() error {
	return messages.InvokeResponse_Error{Type: typeName(e.value), Message: fmt.Sprint(e.value)}
}

// takeMessage runs fn under the guard, like Do.
func (g *Guard) takeMessage(ctx context.Context, c call, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	d := g.once(ctx, c, w)
	switch {
	case d.refusal != nil:
		return refusedDo[struct{}](d.refusal)
	case d.replays: // the message was handled before
		return done[struct{}]{}
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

// passMessage runs fn unguarded.
func (g *Guard) passMessage(ctx context.Context, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	if attemptOf(ctx) != nil { // inside the handler of an outer guard, which commits the enlisted writes
		w.run(ctx)
	} else if d := g.bypass(ctx, w); d.refusal != nil {
		return refusedDo[struct{}](d.refusal)
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

var errNoSource = errors.New("the message names no source: set BatchOptions.Operation")
