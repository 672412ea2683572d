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

// source describes one kind of event: how to list its messages and to read one.
type source[E, M any] struct {
	list func(E) []M
	read func(M) message
	// lasts reports whether Lambda retries a message a limited number of times. If so,
	// a message whose record is in progress waits for the lease to end, because failing
	// it would use up a retry.
	lasts bool
}

// messageGuard guards the messages of one kind of event.
type messageGuard[E, M any] struct {
	source[E, M]
	g      *Guard
	opts   BatchOptions[M]
	handle func(context.Context, M) error

	ownOnce, shortOnce sync.Once // for warnings that are logged once
}

// longestWait exceeds the timeout of any invocation: 15 minutes, or 90 on managed
// instances (AWS Lambda, "Lambda quotas"). Every wait ends before the invocation's
// deadline, in time to answer.
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

// taken is the state of one message of a batch.
type taken[M any] struct {
	message
	it        M
	call      call
	refusal   *Error // why the message can't be guarded; nil if it can
	unguarded bool
	begun     bool
	end       done[struct{}]
}

// take runs a batch. It returns the state of each message after the run.
func (b *messageGuard[E, M]) take(ctx context.Context, event E) []*taken[M] {
	list, mayBegin := b.list(event), b.timeToBegin(ctx)
	all, items := make([]*taken[M], len(list)), make([]batch.Item, len(list))
	for i, it := range list {
		t := &taken[M]{it: it}
		b.identify(ctx, t, mayBegin)
		all[i], items[i].Group = t, t.group
		if t.refusal == nil && !t.unguarded {
			items[i].Key, items[i].Content = t.call.who.id(), t.call.fingerprint
		}
	}
	o := batch.Options{Concurrency: b.opts.Concurrency, StopAll: b.opts.StopBatch, May: mayBegin}
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

// timeToBegin returns a function that returns an error if too little time is left to
// begin another message. An invocation that times out can't report which messages
// failed, so that Lambda retries the whole batch.
//
// Options.MinRunTime and Reserve must be left. But if the invocation starts with hardly more than
// that, no message would ever begin, and all messages would end in the dead-letter
// queue. In this case messages begin as long as half of the time is left.
func (b *messageGuard[E, M]) timeToBegin(ctx context.Context) func() error {
	deadline, limited := ctx.Deadline()
	if !limited {
		return ctx.Err
	}
	left := time.Until(deadline)
	need := b.g.opts.MinRunTime + b.g.opts.reserveOf(left)
	if need > left-left/10 {
		need = left / 2
		if b.g.opts.MinRunTime > defaultMinRunTime || b.g.opts.Reserve > 0 {
			b.shortOnce.Do(func() {
				slog.Default().WarnContext(ctx, "no invocation has Options.MinRunTime and Reserve left, so messages begin in the first half of its time; "+
					"raise the function's timeout above their sum, or lower them", "min_run_time", b.g.opts.MinRunTime, "reserve", b.g.opts.Reserve, "left", left)
			})
		}
	}
	return func() error {
		if time.Until(deadline) < need {
			return errLate
		}
		return ctx.Err()
	}
}

var errLate = errors.New("too little time is left of the invocation")

// conclude ends the messages that did not begin. It logs one line and sends one event
// for all of them, because near the deadline there is no time for more.
func (b *messageGuard[E, M]) conclude(ctx context.Context, all []*taken[M], errs []error) {
	var idle, late []*taken[M]
	var why error // the error of the first late message, or of the first idle one if none is late
	for i, err := range errs {
		t := all[i]
		if err == nil || t.end.err != nil {
			continue // the message succeeded, or one has recorded its failure
		}
		if t.begun {
			t.end = done[struct{}]{err: err, outcome: OutcomeReleased} // the handler called runtime.Goexit
			b.failed(ctx, t)
			continue
		}
		t.end = refusedDo[struct{}](notBegun(err))
		isLate := err == errLate || err == ctx.Err() //nolint:errorlint // timeToBegin returns these errors unwrapped
		if why == nil || isLate && len(late) == 0 {
			why = err
		}
		if idle = append(idle, t); isLate {
			late = append(late, t)
		}
		b.failed(ctx, t)
	}
	if len(late) > 0 {
		b.cutShort(ctx, late, late[0].end.refusal)
	}
	if len(idle) > 0 && b.opts.OnFailure == nil {
		slog.Default().WarnContext(ctx, "messages were not begun", "source", idle[0].source, "count", len(idle), "ids", firstNames(idle), "why", why)
	}
}

// cutShort sends one event for all messages that there was no time to begin.
func (b *messageGuard[E, M]) cutShort(ctx context.Context, late []*taken[M], why error) {
	who := late[0].call.who
	who.Key, who.OwnID = "", false
	e := b.g.event(EventOutOfTime, &who, why)
	e.Scope, e.Messages = who.scope(b.g.readable(&who)), len(late)
	b.g.opts.Observer.Observe(ctx, e)
}

// firstNames returns the names of the first ten messages.
func firstNames[M any](all []*taken[M]) []string {
	var names []string
	for _, t := range all[:min(len(all), 10)] {
		names = append(names, t.name)
	}
	return names
}

// identify sets the message's call, or its refusal if the message can't be guarded.
func (b *messageGuard[E, M]) identify(ctx context.Context, t *taken[M], mayBegin func() error) {
	defer func() {
		if v := recover(); v != nil {
			t.refusal = keyInvalid("The message's key could not be found.", sound(&panicError{v, nil}))
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
	if err := mayBegin(); err != nil { // BatchOptions.Key takes time too
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
	case text == "" && err == nil: // an empty key is invalid, and not missing, like an empty header
		err = errors.New("it is empty")
	}
	if err == nil && text != "" && !who.OwnID { // ValidateKey does not apply to ids that the source gave
		err = b.g.opts.ValidateKey(text)
	}
	switch {
	case err != nil:
		t.refusal = keyInvalid("The message's idempotency key is invalid.", sound(err))
	case text == "" && b.g.opts.KeyOptional:
		t.unguarded = true
	case text == "":
		t.refusal = keyMissing("The message has no idempotency key.")
	default:
		who.Key = text
		p, parts := t.payload(b.opts.FingerprintAttributes)
		t.call = b.g.newCall(who, p, parts...)
		b.warnOfOwnID(t)
	}
}

// warnOfOwnID warns once that policy Hold does not protect a message that is sent again
// with a new id.
func (b *messageGuard[E, M]) warnOfOwnID(t *taken[M]) {
	if b.g.opts.Policy != Hold || !t.call.who.OwnID {
		return
	}
	b.ownOnce.Do(func() {
		slog.Default().Warn("messages are guarded by the ids of their source: one that is sent or redriven anew has another, and runs though it is held; "+
			"let senders give a key ("+MessageKey+"), or set BatchOptions.Key", "source", t.source)
	})
}

// one runs one message. If the user's code panics, only this message of the batch fails.
func (b *messageGuard[E, M]) one(ctx context.Context, t *taken[M]) {
	func() {
		defer func() {
			if v := recover(); v != nil { // in Options.Outcome, or the observer
				t.end = done[struct{}]{err: sound(&panicError{v, debug.Stack()}), outcome: OutcomeReleased}
			}
		}()
		switch {
		case t.refusal != nil:
			b.g.refused(ctx, t.call.who, t.refusal.Code.kind(), t.refusal)
			t.end = refusedDo[struct{}](t.refusal)
		case t.unguarded:
			b.unkeyed(ctx, t)
			t.end = b.g.passMessage(ctx, b.handlerOf(t))
		default:
			t.end = b.g.takeMessage(ctx, t.call, b.handlerOf(t))
		}
	}()
	process.EndIfDead(ctx)
	if t.end.err != nil && b.discards(ctx, t) {
		t.end = done[struct{}]{}
	}
	if t.end.err != nil {
		b.failed(ctx, t)
	}
}

// handlerOf returns the handler of one message, whose context ends after
// BatchOptions.Timeout. The lease lasts longer, so that no other attempt runs while a
// handler ignores the end of its context.
func (b *messageGuard[E, M]) handlerOf(t *taken[M]) func(context.Context) error {
	return func(ctx context.Context) error {
		if b.opts.Timeout > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, b.opts.Timeout, errTimeout)
			defer cancel()
			ctx = limited
		}
		return b.handle(ctx, t.it)
	}
}

var errTimeout = errors.New("the message's time, BatchOptions.Timeout, is over")

// discards reports whether BatchOptions.Discard gives up a message. It calls Discard
// only for messages that the guard would refuse again on every retry.
func (b *messageGuard[E, M]) discards(ctx context.Context, t *taken[M]) (discard bool) {
	if b.opts.Discard == nil || t.end.refusal == nil || t.end.refusal.unfinished {
		return false
	}
	switch t.end.refusal.Code {
	case ErrKeyMissing, ErrKeyInvalid, ErrPayloadMismatch:
	default:
		return false
	}
	why := t.end.err
	defer func() {
		if v := recover(); v != nil {
			discard, t.end.err = false, errors.Join(why, sound(&panicError{v, debug.Stack()}))
		}
	}()
	if !b.opts.Discard(ctx, t.it, why) {
		return false
	}
	slog.Default().WarnContext(ctx, "a message was discarded: it is acknowledged, and this time it did not run", "source", t.source, "id", t.name, "error", why)
	return true
}

// unkeyed sends the event of a message that runs unguarded, and logs a warning if the
// message has no key.
func (b *messageGuard[E, M]) unkeyed(ctx context.Context, t *taken[M]) {
	b.g.bypassed(ctx)
	if !b.g.off {
		slog.Default().WarnContext(ctx, "a message without an idempotency key runs unguarded", "source", t.source, "id", t.name)
	}
}

// failed reports a message that was not handled to OnFailure or the log.
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

// recordID returns the id of the message's record, or "" if the message has none.
func (t *taken[M]) recordID() string {
	if t.refusal != nil || t.unguarded {
		return ""
	}
	return t.call.who.id()
}

// lambdaError returns the message's error in the form in which Lambda reports it.
func (t *taken[M]) lambdaError() error {
	if p := (*panicError)(nil); errors.As(t.end.err, &p) {
		return p.reported()
	}
	return t.end.lambdaError()
}

// failures returns the names of the messages that failed, without duplicates, or an
// error if the whole batch must fail.
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

// errorsOf returns the errors of the messages that failed, in the form in which Lambda
// reports them.
func errorsOf[M any](all []*taken[M]) []error {
	var errs []error
	for _, t := range all {
		if t.end.err != nil {
			errs = append(errs, t.lambdaError())
		}
	}
	return errs
}

// reported returns a handler for events whose response names the failed messages.
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

// failuresOf returns the list of failures for a response.
func failuresOf[F any](names []string, failure func(name string) F) []F {
	all := make([]F, len(names)) // not nil, so that its JSON is an empty list and not null
	for i, name := range names {
		all[i] = failure(name)
	}
	return all
}

// asynchronous returns a handler for events that Lambda retries only if the handler
// returns an error. The error of an event with a single message is that of the message.
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
