package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// MessageKey is the message attribute that carries an idempotency key over a queue
// or a topic (V3): of type String. On EventBridge, whose events have no attributes,
// it is a member of the detail.
const MessageKey = "x-idempotency-key"

// message is the one form of every message and stream record.
type message struct {
	name   string // by which a batch's answer names it
	source string // ARN of what it came from
	group  string // order counts among those of one group; "": it doesn't
	sent   key    // that its sender gave
	id     string // the source's own: the same in each delivery
	body   []byte
	parts  []string // what else the fingerprint is made of; the attributes apart
	attrs  []attribute
}

// key is what a sender gave as one, and why that is none.
type key struct {
	text  string
	given bool
	err   error
}

// attribute is a message attribute in one text.
type attribute struct{ name, value string }

// fingerprint is SHA-256 over body and attributes (V3): never over what changes
// from one delivery to the next. A body that is JSON counts by value (F3).
func (g *Guard) messageFingerprint(m *message, ignored []string) string {
	parts := slices.Clone(m.parts)
	slices.SortFunc(m.attrs, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	for _, a := range m.attrs {
		if a.name != MessageKey && !slices.ContainsFunc(ignored, func(name string) bool { return strings.EqualFold(name, a.name) }) {
			parts = append(parts, a.name, a.value)
		}
	}
	return g.digest(true, m.body, parts...)
}

// messageWork is a handler of one message, as the guard runs it.
type messageWork struct {
	g   *Guard
	fn  func(context.Context) error
	err error
}

// run runs the handler. A panic is this message's failure, not its neighbours'.
func (w *messageWork) run(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			w.err = &panicError{v, debug.Stack()}
		}
		w.answered()
	}()
	w.err = w.fn(ctx)
}

// answered takes an Answer for what it stands for: there is one answer alone.
func (w *messageWork) answered() {
	if _, ok := w.err.(*answerError); ok { //nolint:errorlint // alone: what wraps it says otherwise (X2)
		w.err = nil
	}
}

func (w *messageWork) rejected(err error) ending {
	w.err = err
	w.answered()
	return w.ending()
}

// ending says what becomes of the message (V2). A failure is never stored, not even
// a permanent one: a message that comes back from a dead-letter queue, after a mend,
// must run.
func (w *messageWork) ending() ending {
	switch {
	case w.err == nil:
		return ending{outcome: OutcomeSucceeded, encode: func() ([]byte, error) { return []byte("{}"), nil }}
	case w.g.outcomeOfError(w.err) == OutcomeUncertain:
		return ending{outcome: OutcomeUncertain, err: w.err}
	default:
		return ending{outcome: OutcomeReleased, err: w.err}
	}
}

// panicError is a handler's panic, as the error of its message.
type panicError struct {
	value any
	stack []byte
}

// Error has the stack too: there is no other place where it would be seen.
func (e *panicError) Error() string {
	return fmt.Sprintf("the handler panicked: %v\n%s", e.value, e.stack)
}

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// takeMessage takes one message through the guard. Its result is that of a Do.
func (g *Guard) takeMessage(ctx context.Context, who Identity, fingerprint string, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	d := g.once(ctx, call{who: who, fingerprint: fingerprint}, w)
	switch {
	case d.refusal != nil:
		return refusedDo[struct{}](d.refusal)
	case d.replay != nil: // it was done before, whatever became of its answer
		return done[struct{}]{}
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

// passMessage lets one message run unguarded.
func (g *Guard) passMessage(ctx context.Context, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	if d := g.bypass(ctx, w); d.refusal != nil {
		return refusedDo[struct{}](d.refusal)
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased}
}

var errNoSource = errors.New("the message names no source: set BatchOptions.Operation")
