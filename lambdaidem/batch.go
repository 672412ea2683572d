package lambdaidem

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/batch"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/process"
)

// source is what a kind of event says of itself: how to list its messages and to
// read one. It has no opinion.
type source[E, M any] struct {
	list func(E) []M
	read func(M) message
	// lasts says that a message comes back only so many times, whatever it is
	// reported with, so that the batch waits for a lease rather than to burn one.
	lasts bool
}

// messageGuard guards the messages of one kind of event.
type messageGuard[E, M any] struct {
	source[E, M]
	g       *Guard
	opts    BatchOptions[M]
	handle  func(context.Context, M) error
	ownOnce sync.Once
}

// longestWait is what no invocation has more of: 15 minutes, and 90 on managed
// instances (AWS Lambda, "Lambda quotas"). The wait ends in time to answer anyway.
const longestWait = 90 * time.Minute

func guardMessages[E, M any](g *Guard, s source[E, M], h func(context.Context, M) error, optFns []func(*BatchOptions[M])) *messageGuard[E, M] {
	if h == nil {
		panic("lambdaidem: the handler of messages is nil")
	}
	b := &messageGuard[E, M]{source: s, g: g, opts: settleBatch(optFns), handle: h}
	switch {
	case b.opts.Wait > 0:
		b.g = g.With(func(o *Options) { o.Wait = b.opts.Wait })
	case s.lasts:
		b.g = g.With(func(o *Options) { o.Wait = longestWait })
	}
	return b
}

// taken is one message of a batch on its way.
type taken[M any] struct {
	message
	it        M
	call      call
	refusal   *Error // it can't be guarded
	unguarded bool
	begun     bool
	end       done[struct{}]
}

// take runs a batch, and returns its messages with their ends.
func (b *messageGuard[E, M]) take(ctx context.Context, event E) []*taken[M] {
	list := b.list(event)
	all, items := make([]*taken[M], len(list)), make([]batch.Item, len(list))
	for i, it := range list {
		t := &taken[M]{it: it}
		b.identify(ctx, t)
		all[i], items[i].Group = t, t.group
		if t.refusal == nil && !t.unguarded {
			items[i].Key, items[i].Content = t.call.who.id(), t.call.fingerprint
		}
	}
	o := batch.Options{Concurrency: b.opts.Concurrency, StopAll: b.opts.StopBatch, May: func() error { return b.mayBegin(ctx) }}
	errs := batch.Run(items, o, func(i int) error {
		process.EndIfDead(ctx)
		all[i].begun = true
		b.one(ctx, all[i])
		return all[i].end.err
	})
	process.EndIfDead(ctx)
	b.conclude(ctx, all, errs)
	return all
}

// conclude takes note of the messages that did not begin, and of those that are done
// because their duplicate is.
func (b *messageGuard[E, M]) conclude(ctx context.Context, all []*taken[M], errs []error) {
	var names []string
	var why error
	for i, err := range errs {
		t := all[i]
		if err != nil && t.end.err == nil {
			if t.begun { // it died
				t.end = done[struct{}]{err: err, outcome: OutcomeReleased}
			} else {
				t.end = refusedDo[struct{}](notBegun(err))
			}
			if late := errors.Is(err, errLate) || errors.Is(err, ctx.Err()); late && !t.begun {
				b.g.refused(ctx, t.call.who, EventOutOfTime, t.end.refusal)
			}
			b.failed(ctx, t)
		}
		if errors.Is(t.end.err, ErrNotBegun) {
			names, why = append(names, t.name), err
		}
	}
	if len(names) > 0 && b.opts.OnFailure == nil {
		slog.Default().WarnContext(ctx, "messages were not begun", "source", all[0].source, "messages", names, "why", why)
	}
}

// mayBegin tells whether there is time for another message. One that is cut off by
// the function's timeout takes the batch's answer with it, and then all of the batch
// comes again.
func (b *messageGuard[E, M]) mayBegin(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if ok && time.Until(deadline) < b.g.opts.MinRunTime {
		return errLate
	}
	return ctx.Err()
}

var errLate = errors.New("too little time is left of the invocation")

// identify finds out which record a message means, or why it can mean none.
func (b *messageGuard[E, M]) identify(ctx context.Context, t *taken[M]) {
	defer func() {
		if v := recover(); v != nil {
			t.refusal = keyInvalid("The message's key could not be found.", &panicError{v, nil})
		}
	}()
	t.message = b.read(t.it)
	who := Identity{Namespace: b.g.opts.Namespace, Tenant: tenantOf(ctx), Operation: b.opts.Operation, Message: true}
	defaultTo(&who.Operation, t.source)
	defer func() {
		if t.call.who == (Identity{}) {
			t.call.who = who
		}
	}()
	if t.unguarded = b.g.off; t.unguarded {
		return
	}
	if err := b.mayBegin(ctx); err != nil { // a Key that takes its time
		t.refusal = notBegun(err)
		return
	}
	if who.Operation == "" {
		t.refusal = requestInvalid("The message names no source.", errNoSource)
		return
	}
	text, err := t.sent.text, t.sent.err
	switch {
	case b.opts.Key != nil:
		text, err = b.opts.Key(ctx, t.it)
	case !t.sent.given:
		text, who.OwnID = t.id, true
	case text == "" && err == nil: // as of an empty header (K1), it is none to do without
		err = errors.New("it is empty")
	}
	if err == nil && text != "" && !who.OwnID { // the source's own ids have no say in it
		err = b.g.opts.ValidateKey(text)
	}
	switch {
	case err != nil:
		t.refusal = keyInvalid("The message's idempotency key is invalid.", err)
	case text == "" && b.g.opts.KeyOptional:
		t.unguarded = true
	case text == "":
		t.refusal = keyMissing("The message has no idempotency key.")
	default:
		who.Key = text
		body, parts := t.payload(b.opts.FingerprintAttributes)
		t.call = b.g.newCall(who, payload{body: body, json: true}, parts...)
		b.warnOfOwnID(t)
	}
}

// warnOfOwnID says once that a hold can be evaded.
func (b *messageGuard[E, M]) warnOfOwnID(t *taken[M]) {
	if b.g.opts.Policy != Hold || !t.call.who.OwnID {
		return
	}
	b.ownOnce.Do(func() {
		slog.Default().Warn("messages are guarded by the ids of their source: one that is sent or redriven anew has another, and runs though it is held; "+
			"let senders give a key ("+MessageKey+"), or set BatchOptions.Key", "source", t.source)
	})
}

// one takes one message through the guard. Whatever panics, it is this message's
// failure.
func (b *messageGuard[E, M]) one(ctx context.Context, t *taken[M]) {
	func() {
		defer func() {
			if v := recover(); v != nil { // in Options.Outcome, or the observer
				t.end = done[struct{}]{err: &panicError{v, debug.Stack()}, outcome: OutcomeReleased}
			}
		}()
		switch run := func(ctx context.Context) error { return b.handle(ctx, t.it) }; {
		case t.refusal != nil:
			b.g.refused(ctx, t.call.who, t.refusal.Code.kind(), t.refusal)
			t.end = refusedDo[struct{}](t.refusal)
		case t.unguarded:
			b.unkeyed(ctx, t)
			t.end = b.g.passMessage(ctx, run)
		default:
			t.end = b.g.takeMessage(ctx, t.call, run)
		}
	}()
	process.EndIfDead(ctx)
	if t.end.err != nil {
		b.failed(ctx, t)
	}
}

// unkeyed counts a message that runs unguarded, and logs one that has no key.
func (b *messageGuard[E, M]) unkeyed(ctx context.Context, t *taken[M]) {
	b.g.bypassed(ctx)
	if !b.g.off {
		slog.Default().WarnContext(ctx, "a message without an idempotency key runs unguarded", "source", t.source, "id", t.name)
	}
}

// failed tells of a message that was not done.
func (b *messageGuard[E, M]) failed(ctx context.Context, t *taken[M]) {
	warn := func(err error) {
		slog.Default().WarnContext(ctx, "a message failed", "source", t.source, "id", t.name, "record", t.recordID(), "error", err)
	}
	if b.opts.OnFailure == nil {
		if !errors.Is(t.end.err, ErrNotBegun) {
			warn(t.end.err)
		}
		return
	}
	defer func() {
		if v := recover(); v != nil {
			warn(errors.Join(t.end.err, &panicError{v, debug.Stack()}))
		}
	}()
	b.opts.OnFailure(ctx, t.it, t.end.err)
}

// recordID returns the id of the message's record; it is empty if the message has
// no record.
func (t *taken[M]) recordID() string {
	if t.refusal != nil || t.unguarded {
		return ""
	}
	return t.call.who.id()
}

// lambdaError is the message's error as Lambda is to report it.
func (t *taken[M]) lambdaError() error {
	if p := (*panicError)(nil); errors.As(t.end.err, &p) {
		return p.reported()
	}
	return t.end.lambdaError()
}

// failures are the names of the messages that failed, each once. The error is that
// of the batch as a whole.
func (b *messageGuard[E, M]) failures(all []*taken[M]) ([]string, error) {
	var names []string
	nameless, known := false, map[string]bool{}
	for _, t := range all {
		if t.end.err == nil {
			continue
		}
		nameless = nameless || t.name == ""
		if !known[t.name] {
			known[t.name] = true
			names = append(names, t.name)
		}
	}
	if len(names) > 0 && (b.opts.WholeBatch || nameless) {
		return nil, &BatchError{Messages: len(all), Errs: errorsOf(all)}
	}
	return names, nil
}

// errorsOf are the errors of the messages that failed, as Lambda is to report them.
func errorsOf[M any](all []*taken[M]) []error {
	var errs []error
	for _, t := range all {
		if t.end.err != nil {
			errs = append(errs, t.lambdaError())
		}
	}
	return errs
}

// reported is a handler for events whose failures are reported by name.
func reported[E, M, R any](b *messageGuard[E, M], answer func(names []string) R) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (R, error) {
		names, err := b.failures(b.take(ctx, event))
		if err != nil {
			var none R
			return none, err
		}
		return answer(names), nil
	}
}

// failuresOf are the entries of an answer's list.
func failuresOf[F any](names []string, failure func(name string) F) []F {
	all := make([]F, len(names)) // an empty list, never null
	for i, name := range names {
		all[i] = failure(name)
	}
	return all
}

// asynchronous is a handler for events that come again if an error is returned,
// and have no other way of saying so. The error of a single message is its own.
func asynchronous[E, M any](b *messageGuard[E, M]) func(context.Context, E) error {
	return func(ctx context.Context, event E) error {
		all := b.take(ctx, event)
		switch errs := errorsOf(all); {
		case len(errs) == 0:
			return nil
		case len(all) == 1:
			return errs[0]
		default:
			return &BatchError{Messages: len(all), Errs: errs}
		}
	}
}
