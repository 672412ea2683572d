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

// messageGuard is a guarded handler for the messages of one event source.
type messageGuard[E, M any] struct {
	source[E, M]
	g      *Guard
	opts   BatchOptions[M]
	handle func(context.Context, M) error // the user's handler

	ownOnce, shortOnce sync.Once // log the warnings of warnOfOwnID and timeToBegin once
}

// longestWait is the default BatchOptions.Wait for an event source that limits the retries of a
// message. While another attempt for the same message is running, the message waits rather than
// fails, because each failure costs one of these retries. No function has a longer timeout, not
// even on managed instances (AWS Lambda, "Lambda quotas"), so the invocation's deadline limits the
// wait.
const longestWait = 90 * time.Minute

func guardMessages[E, M any](g *Guard, s source[E, M], h func(context.Context, M) error, optFns []func(*BatchOptions[M])) *messageGuard[E, M] {
	if h == nil {
		panic("lambdaidem: the handler of messages is nil")
	}
	b := &messageGuard[E, M]{source: s, g: g, opts: settleBatch(optFns), handle: h}
	switch {
	case b.opts.Wait > 0:
		b.g = g.With(func(o *Options) { o.Wait = b.opts.Wait })
	case s.limitedRetries:
		b.g = g.With(func(o *Options) { o.Wait = longestWait })
	}
	return b
}

// batchMessage is the state of one message of a batch.
type batchMessage[M any] struct {
	message
	raw       M              // the message as the handler receives it
	call      call           // the guarded call; if refusal or unguarded is set, only call.identity is set
	refusal   *Error         // why the message must not run, such as an invalid key; nil if it may
	unguarded bool           // the message runs without a record: it has no key, or the guard is switched off
	panicked  bool           // the user's code panicked before the handler could run for the message; a later version may handle the message
	begun     bool           // the batch reached the message; false if an earlier failure or a lack of time prevented that
	end       done[struct{}] // how the message ended
}

// runBatch runs the handler for the messages of an event. It returns the state of each message
// after the run.
func (b *messageGuard[E, M]) runBatch(ctx context.Context, event E) []*batchMessage[M] {
	list, mayBegin := b.list(event), b.timeToBegin(ctx)
	all, items := make([]*batchMessage[M], len(list)), make([]batch.Item, len(list))
	for i, it := range list {
		t := &batchMessage[M]{raw: it}
		b.identify(ctx, event, t, mayBegin)
		all[i], items[i].Group = t, t.group
		if t.refusal == nil && !t.unguarded {
			items[i].Key, items[i].Content = t.call.id, t.call.fingerprint
		}
	}
	o := batch.Options{Concurrency: b.opts.Concurrency, StopAll: b.opts.StopBatch, May: mayBegin}
	errs := batch.Run(items, o, func(i int) error {
		process.EndIfDead(ctx)
		all[i].begun = true
		b.runMessage(ctx, all[i])
		return all[i].end.err
	})
	process.EndIfDead(ctx)
	b.conclude(ctx, all, errs)
	return all
}

// runMessage runs the handler for one message. If the user's code panics, only this message of
// the batch fails.
func (b *messageGuard[E, M]) runMessage(ctx context.Context, t *batchMessage[M]) {
	func() {
		defer func() {
			if v := recover(); v != nil { // Options.Outcome or the observer panicked
				t.end = done[struct{}]{err: safeError(&panicError{v, debug.Stack()}), outcome: OutcomeReleased}
			}
		}()
		switch {
		case t.refusal != nil:
			b.g.refused(ctx, t.call.identity, t.refusal.Code.kind(), t.refusal)
			t.end = refusedDo[struct{}](t.refusal)
		case t.unguarded:
			b.noteUnguarded(ctx, t)
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

// handlerOf returns the handler of one message, with a context that ends after
// BatchOptions.Timeout. The lease does not end then, because the handler may ignore its context
// and continue to run. The lease lasts until the end of the invocation, and no other attempt runs
// before then.
func (b *messageGuard[E, M]) handlerOf(t *batchMessage[M]) func(context.Context) error {
	return func(ctx context.Context) error {
		if b.opts.Timeout > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, b.opts.Timeout, errTimeout)
			defer cancel()
			ctx = limited
		}
		return b.handle(ctx, t.raw)
	}
}

var errTimeout = errors.New("the message's time, BatchOptions.Timeout, is over")

// noteUnguarded reports that a message runs unguarded. If the guard is switched off,
// noteUnguarded sends an EventSwitchedOff. Otherwise the message has no key, and
// noteUnguarded sends an EventBypassed and logs a warning, because the sender may have
// forgotten the key.
func (b *messageGuard[E, M]) noteUnguarded(ctx context.Context, t *batchMessage[M]) {
	b.g.bypassed(ctx)
	if !b.g.switchedOff {
		slog.Default().WarnContext(ctx, "a message without an idempotency key runs unguarded", "source", t.source, "id", t.name)
	}
}

// failed passes the error of a message to BatchOptions.OnFailure, or logs it if OnFailure is nil.
// It does not log the error ErrNotBegun, because conclude logs a single line for all messages with
// this error.
func (b *messageGuard[E, M]) failed(ctx context.Context, t *batchMessage[M]) {
	warn := func(err error) {
		slog.Default().WarnContext(ctx, "a message failed", "source", t.source, "id", t.name, "record", t.recordID(), "error", err)
	}
	err := t.end.callersError(ctx) // without codes of calls inside the handler
	if b.opts.OnFailure == nil {
		if !errors.Is(err, ErrNotBegun) {
			warn(t.end.err)
		}
		return
	}
	defer func() {
		if v := recover(); v != nil {
			warn(errors.Join(t.end.err, &panicError{v, debug.Stack()}))
		}
	}()
	b.opts.OnFailure(ctx, t.raw, err)
}

// recordID returns the id of the message's record, or "" if the message has none.
func (t *batchMessage[M]) recordID() string {
	if t.refusal != nil || t.unguarded {
		return ""
	}
	return t.call.id
}
