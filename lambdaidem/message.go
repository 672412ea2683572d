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
// or a topic (V3): of type String. On EventBridge, whose events have no attributes,
// it is a member of the detail.
const MessageKey = "x-idempotency-key"

// message is the one form of every message and stream record.
type message struct {
	name   string // by which a batch's answer names it
	source string // what it came from: an ARN, where there is one
	group  string // order counts among those of one group; "": it doesn't
	sent   key    // that its sender gave
	id     string // the source's own: the same in each delivery
	body   []byte
	parts  []string // what else the fingerprint counts, besides attributes
	attrs  []attribute
}

// key is what a sender gave as one, and why that is none.
type key struct {
	text  string
	given bool
	err   error
}

// attribute is a message attribute.
type attribute struct{ name, dataType, value string }

// attribute takes in a message attribute. The key's is found in any case, as a
// header is (K1).
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

// payload returns what the fingerprint of a message counts: its body, what the source
// itself says of it, and the attributes that are named. Nothing counts that differs
// from one delivery to the next. A body that is JSON counts by value.
func (m *message) payload(named []string) (body []byte, parts []string) {
	isNamed := func(a attribute) bool {
		return slices.ContainsFunc(named, func(name string) bool { return strings.EqualFold(name, a.name) })
	}
	var counted []attribute
	for _, a := range m.attrs {
		if isNamed(a) {
			counted = append(counted, a)
		}
	}
	// The attributes come from a map, in random order. A queue's own attribute stays
	// before one of the same name in an envelope that the queue carries.
	slices.SortStableFunc(counted, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	parts = slices.Clone(m.parts)
	for _, a := range counted {
		parts = append(parts, a.name, a.dataType, a.value)
	}
	return m.body, parts
}

// messageWork is a handler of one message, as the guard runs it.
type messageWork struct {
	g   *Guard
	fn  func(context.Context) error
	err error
}

// run runs the handler. A panic is this message's failure, not its neighbours'.
func (w *messageWork) run(ctx context.Context) {
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

// sound returns err if it can be examined. If a method of err, or of an error in it,
// panics, sound returns that panic as an error without anything in it, so that whoever
// looks at the failure later (the outcome rule, the log, Lambda) does not panic too.
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

// nobodysError is an error that nothing returns: a search for it visits a whole tree.
type nobodysError struct{ _ byte }

func (*nobodysError) Error() string { return "" }

// answered takes an Answer for what it stands for: there is one answer alone.
func (w *messageWork) answered() {
	if _, ok := w.err.(*answerError); ok { //nolint:errorlint // alone: what wraps it says otherwise (X2)
		w.err = nil
	}
}

func (*messageWork) replay(decision) error { return nil }

func (w *messageWork) rejected(err error) ending {
	w.err = sound(err)
	w.answered()
	return w.ending()
}

// ending says what becomes of the message (V2). A failure is never stored, not even
// a permanent one: a message that comes back from a dead-letter queue, after a mend,
// must run.
func (w *messageWork) ending() ending {
	if w.err == nil {
		return ending{outcome: OutcomeSucceeded, success: true, encoded: true}
	}
	end := ending{outcome: OutcomeReleased, err: w.err}
	if p := (*panicError)(nil); errors.As(w.err, &p) { // X2: whatever the panic's value is marked with
		if w.g.opts.Policy == Hold {
			end.outcome = OutcomeUncertain
		}
		return end
	}
	switch o := w.g.outcomeOfError(w.err); o {
	case OutcomeSucceeded, OutcomeFailed, OutcomeReleased:
	default: // one of Options.Outcome's own making too
		end.outcome = o
	}
	return end
}

func (*messageWork) encode() ([]byte, error) { return []byte("{}"), nil }

// panicError is a handler's panic, as the error of its message.
type panicError struct {
	value any
	stack []byte
}

// Error has the stack too: there is no other place where it would be seen.
func (e *panicError) Error() string { return fmt.Sprintf("a panic: %v\n%s", e.value, e.stack) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// reported is the panic as Lambda is to report it: as it reports those of handlers
// that are not guarded, without the stack, which the log has.
func (e *panicError) reported() error {
	return messages.InvokeResponse_Error{Type: typeName(e.value), Message: fmt.Sprint(e.value)}
}

// takeMessage takes one message through the guard. Its result is that of a Do.
func (g *Guard) takeMessage(ctx context.Context, c call, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	d := g.once(ctx, c, w)
	switch {
	case d.refusal != nil:
		return refusedDo[struct{}](d.refusal)
	case d.replays: // it was done before, whatever became of its answer
		return done[struct{}]{}
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

// passMessage lets one message run unguarded.
func (g *Guard) passMessage(ctx context.Context, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	if attemptOf(ctx) != nil { // what an outer guard guards is its own
		w.run(ctx)
	} else if d := g.bypass(ctx, w); d.refusal != nil {
		return refusedDo[struct{}](d.refusal)
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

var errNoSource = errors.New("the message names no source: set BatchOptions.Operation")

// attributesForm returns the form of a payload with these message attributes: see
// payload.form.
func attributesForm(named []string) string {
	var form []byte
	for _, name := range slices.Compact(slices.Sorted(slices.Values(named))) {
		form = appendPart(form, strings.ToLower(name))
	}
	return string(form)
}
