package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/batch"
)

// BatchOptions are the settings of one decorator of messages or stream records
// ([Guard.SQS] and its like). The zero value of every field is its default.
type BatchOptions[M any] struct {
	// Key finds the idempotency key of a message (K5). An empty one is a missing
	// key. Default: what the sender gave as [MessageKey], else the id that the
	// source itself gave the message, which is the same in each delivery of it.
	//
	// A redrive from a dead-letter queue, and a sender that sends again, make a new
	// message with a new id. Where effects may have happened by then, the sender
	// must give a key, or Key derive one from the message. Under policy [Hold] a
	// warning says so, once, where the source's own id is taken.
	Key func(context.Context, M) (string, error)
	// Operation says what is done: with the key it identifies the record (F1, V3).
	// Default: the source's ARN; of an EventBridge event its source. The consumers
	// of a queue and of its dead-letter queue share their records if both have the
	// same Operation, and their guards the same Options.Namespace.
	Operation string
	// IgnoreAttributes are message attributes that don't count in the fingerprint,
	// matched without case (F4, V3). Default: those of tracing, which a sender that
	// sends again gives another value: traceparent, tracestate, baggage, b3,
	// X-Amzn-Trace-Id, AWSTraceHeader.
	IgnoreAttributes []string
	// Concurrency is how many messages run at a time. Messages of one group (a FIFO
	// group, a partition key, an item of a table) never do, nor those of one key.
	// Default: 1, in the order of the batch.
	Concurrency int
	// StopBatch lets nothing of a batch begin after its first failure, as AWS
	// advises for FIFO queues ("Handling errors for an SQS event source in Lambda").
	// Default: nothing of the same group; see [Guard.SQS].
	StopBatch bool
	// WholeBatch fails the whole batch where one message fails, by a *[BatchError]:
	// for event source mappings without ReportBatchItemFailures, which take a list
	// of failures for a success. Default: the failed messages are reported.
	WholeBatch bool
	// OnFailure is told of each message that was not done, and why; an error of
	// code [ErrNotBegun] says that it never began. It must be safe for concurrent
	// use where Concurrency is above 1. Default: a warning on slog.Default() for
	// each that did begin.
	OnFailure func(context.Context, M, error)
}

// tracing are the attributes that tell deliveries apart and not messages.
var tracing = []string{"traceparent", "tracestate", "baggage", "b3", "X-Amzn-Trace-Id", "AWSTraceHeader"}

func settleBatch[M any](optFns []func(*BatchOptions[M])) BatchOptions[M] {
	var o BatchOptions[M]
	for _, fn := range optFns {
		fn(&o)
	}
	if o.Concurrency < 0 {
		panic(fmt.Sprintf("lambdaidem: BatchOptions.Concurrency is %d; it must be positive, or 0 for the default", o.Concurrency))
	}
	if o.IgnoreAttributes == nil {
		o.IgnoreAttributes = tracing
	}
	return o
}

// BatchError is the error of a batch that failed as a whole: of an asynchronous
// invocation of several records, and with BatchOptions.WholeBatch. errors.Is and
// errors.As reach what each message failed with.
type BatchError struct {
	Messages int     // in the batch
	Errs     []error // of those that failed, in their order
}

// Error counts the failures, and has the first one's text.
func (e *BatchError) Error() string {
	return fmt.Sprintf("%d of %d messages failed; the first: %v", len(e.Errs), e.Messages, e.Errs[0])
}

// Unwrap returns Errs.
func (e *BatchError) Unwrap() []error { return e.Errs }

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
	if s.lasts && g.opts.Wait == 0 {
		g = g.With(func(o *Options) { o.Wait = longestWait })
	}
	return &messageGuard[E, M]{source: s, g: g, opts: settleBatch(optFns), handle: h}
}

// taken is one message of a batch on its way.
type taken[M any] struct {
	message
	it          M
	who         Identity
	fingerprint string
	refusal     *Error // it can't be guarded
	unguarded   bool
	end         done[struct{}]
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
			items[i].Key, items[i].Content = t.who.id(), t.fingerprint
		}
	}
	o := batch.Options{Concurrency: b.opts.Concurrency, StopAll: b.opts.StopBatch, May: func() error { return b.mayBegin(ctx) }}
	errs := batch.Run(items, o, func(i int) error {
		all[i].end = b.one(ctx, all[i])
		return all[i].end.err
	})
	for i, err := range errs {
		if t := all[i]; err != nil && t.end.err == nil {
			t.end = refusedDo[struct{}](notBegun(err))
			b.failed(ctx, t)
		}
	}
	return all
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
	t.who = Identity{Namespace: b.g.opts.Namespace, Tenant: tenantOf(ctx), Operation: b.opts.Operation, Message: true}
	defaultTo(&t.who.Operation, t.source)
	if t.unguarded = b.g.off; t.unguarded {
		return
	}
	if t.who.Operation == "" {
		t.refusal = requestInvalid("The message names no source.", errNoSource)
		return
	}
	text, err := t.sent.text, t.sent.err
	switch {
	case b.opts.Key != nil:
		text, err = b.opts.Key(ctx, t.it)
	case !t.sent.given:
		text, t.who.OwnID = t.id, true
	case text == "" && err == nil: // as of an empty header (K1), it is none to do without
		err = errors.New("it is empty")
	}
	if err == nil && text != "" && !t.who.OwnID { // the source's own ids have no say in it
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
		t.who.Key = text
		t.fingerprint = b.g.messageFingerprint(&t.message, b.opts.IgnoreAttributes)
		b.warnOfOwnID(t)
	}
}

// warnOfOwnID says once that a hold can be evaded.
func (b *messageGuard[E, M]) warnOfOwnID(t *taken[M]) {
	if b.g.opts.Policy != Hold || !t.who.OwnID {
		return
	}
	b.ownOnce.Do(func() {
		slog.Default().Warn("messages are guarded by the ids of their source: one that is sent or redriven anew has another, and runs though it is held; "+
			"let senders give a key ("+MessageKey+"), or set BatchOptions.Key", "source", t.source)
	})
}

// one takes one message through the guard.
func (b *messageGuard[E, M]) one(ctx context.Context, t *taken[M]) (end done[struct{}]) {
	switch run := func(ctx context.Context) error { return b.handle(ctx, t.it) }; {
	case t.refusal != nil:
		b.g.refused(ctx, t.who, t.refusal.Code.kind(), t.refusal)
		end = refusedDo[struct{}](t.refusal)
	case t.unguarded:
		b.unkeyed(ctx, t)
		end = b.g.passMessage(ctx, run)
	default:
		end = b.g.takeMessage(ctx, t.who, t.fingerprint, run)
	}
	if t.end = end; end.err != nil {
		b.failed(ctx, t)
	}
	return end
}

// unkeyed counts a message that runs unguarded, and logs one that has no key.
func (b *messageGuard[E, M]) unkeyed(ctx context.Context, t *taken[M]) {
	b.g.bypassed(ctx)
	if !b.g.off {
		slog.Default().WarnContext(ctx, "a message without an idempotency key runs unguarded", "source", t.source, "message", t.name)
	}
}

// failed tells of a message that was not done.
func (b *messageGuard[E, M]) failed(ctx context.Context, t *taken[M]) {
	switch {
	case b.opts.OnFailure != nil:
		b.opts.OnFailure(ctx, t.it, t.end.err)
	case !errors.Is(t.end.err, ErrNotBegun):
		slog.Default().WarnContext(ctx, "a message failed", "source", t.source, "message", t.name, "error", t.end.err)
	}
}

// failures are the names of the messages that failed, each once. The error is that
// of the batch as a whole.
func (b *messageGuard[E, M]) failures(all []*taken[M]) ([]string, error) {
	var names []string
	var errs []error
	nameless, known := false, map[string]bool{}
	for _, t := range all {
		if t.end.err == nil {
			continue
		}
		errs = append(errs, t.end.lambdaError())
		nameless = nameless || t.name == ""
		if !known[t.name] {
			known[t.name] = true
			names = append(names, t.name)
		}
	}
	if len(errs) > 0 && (b.opts.WholeBatch || nameless) {
		return nil, &BatchError{Messages: len(all), Errs: errs}
	}
	return names, nil
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

// asynchronous is a handler for events that come again if an error is returned,
// and have no other way of saying so. The error of a single message is its own.
func asynchronous[E, M any](b *messageGuard[E, M]) func(context.Context, E) error {
	return func(ctx context.Context, event E) error {
		all := b.take(ctx, event)
		var errs []error
		for _, t := range all {
			if t.end.err != nil {
				errs = append(errs, t.end.lambdaError())
			}
		}
		switch {
		case len(errs) == 0:
			return nil
		case len(all) == 1:
			return errs[0]
		default:
			return &BatchError{Messages: len(all), Errs: errs}
		}
	}
}
