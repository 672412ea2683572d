package lambdaidem

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/batch"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/process"
)

// source describes one kind of event source, such as SQS.
type source[E, M any] struct {
	list func(E) []M        // returns the messages of an event
	read func(E, M) message // converts a message of an event to the common type
	// limitedRetries reports whether Lambda retries a failed message only a limited
	// number of times. If so, a message whose record is in progress waits until the other
	// attempt has ended, because a failure would use up a retry.
	limitedRetries bool
}

// listByList returns the messages of an event that has a list for each partition or queue, in a map.
// The lists come in the order of their names, because the order of a map is random.
func listByList[M any](lists map[string][]M) []M {
	var all []M
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		all = append(all, lists[name]...)
	}
	return all
}

// messageGuard is a guarded handler for the messages of one event source.
type messageGuard[E, M any] struct {
	source[E, M]
	g      *Guard
	opts   BatchOptions[M]
	handle func(context.Context, M) error // the user's handler

	ownOnce, shortOnce sync.Once // log the warnings of warnOfOwnID and timeToBegin once
}

// longestWait is the default BatchOptions.Wait for an event source that retries a message
// only a limited number of times. No invocation lasts longer: the maximum timeout is 15
// minutes, or 90 minutes on managed instances (AWS Lambda, "Lambda quotas"). By default, a
// message of such a source therefore waits for another attempt until shortly before the
// invocation's deadline.
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
	call      call           // the guarded call; if refusal or unguarded is set, only call.who is set
	refusal   *Error         // why the message must not run, such as an invalid key; nil if it may
	unguarded bool           // the message runs without a record: it has no key, or the guard is switched off
	panicked  bool           // the user's code panicked before the message could run; a later version may handle the message
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

// timeToBegin returns a function that returns an error if too little time is left to begin
// another message. An invocation that times out can't report which messages failed, and
// Lambda then retries the whole batch.
//
// A message may begin if at least Options.MinRunTime plus Options.Reserve is left. If that
// sum exceeds nine tenths of the invocation's time, hardly any message would ever begin,
// and the messages would end in the dead-letter queue. In this case, messages may begin in
// the first half of the invocation's time. The invocation's time is the time that is left
// when timeToBegin is called.
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

// conclude sets the error of each message that did not begin, or whose handler called
// runtime.Goexit. Near the deadline there is no time to log each message that did not
// begin, so conclude logs one line for all of them, unless BatchOptions.OnFailure is set.
// It also sends one event for all those that did not begin because too little time was
// left.
func (b *messageGuard[E, M]) conclude(ctx context.Context, all []*batchMessage[M], errs []error) {
	var idle, late []*batchMessage[M] // idle: all messages that did not begin; late: those that did not begin because too little time was left
	var why error                     // the error to log: that of the first message in late; if there is none, that of the first message in idle
	for i, err := range errs {
		t := all[i]
		if err == nil || t.end.err != nil {
			continue // the message succeeded, or runMessage has set its error
		}
		if t.begun {
			t.end = done[struct{}]{err: err, outcome: OutcomeReleased} // the handler called runtime.Goexit
			b.failed(ctx, t)
			continue
		}
		t.end = refusedDo[struct{}](notBegun(err))
		b.notBegunInside(ctx, t)
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

// notBegunInside matters only if a guarded handler, the outer handler, has called the
// handler of this batch. Otherwise it does nothing. notBegunInside tells the attempt of the
// outer handler that the message t did not begin and may succeed later. If the outer handler
// then fails, its failure is not stored, so that a retry can run the message.
func (b *messageGuard[E, M]) notBegunInside(ctx context.Context, t *batchMessage[M]) {
	outer := attemptOf(ctx)
	if outer == nil {
		return
	}
	var rec innerRecord
	if t.refusal == nil && !t.unguarded {
		rec = innerRecord{b.g.storeKey, t.call.id}
	}
	outer.recordInner(rec, nil, decision{refusal: t.end.refusal})
}

// cutShort sends one EventOutOfTime for all messages that did not begin because too little
// time was left.
func (b *messageGuard[E, M]) cutShort(ctx context.Context, late []*batchMessage[M], why error) {
	who := late[0].call.who
	who.Key, who.OwnID = "", false
	e := b.g.event(EventOutOfTime, &who, why)
	e.Scope, e.Messages = who.scope(b.g.readable(&who)), len(late)
	b.g.opts.Observer.Observe(ctx, e)
}

// firstNames returns the names of the first ten messages, for a log line.
func firstNames[M any](all []*batchMessage[M]) []string {
	var names []string
	for _, t := range all[:min(len(all), 10)] {
		names = append(names, t.name)
	}
	return names
}

// identify finds the key of a message and decides how the message may run. It sets one of
// three fields of t:
//
//   - call, if the message has a key and may run with a record
//   - unguarded, if the message runs without a record
//   - refusal, if the message must not run, for example because its key is missing or
//     invalid
//
// mayBegin returns an error if too little time is left. In that case, identify does not look for the
// key, and sets refusal.
func (b *messageGuard[E, M]) identify(ctx context.Context, event E, t *batchMessage[M], mayBegin func() error) {
	defer func() {
		if v := recover(); v != nil {
			t.refusal = keyInvalid("The message's key could not be found.", safeError(&panicError{v, nil}))
			t.refusal.forNow, t.panicked = true, true
		}
	}()
	t.message = b.read(event, t.raw)
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
		text, err = b.opts.Key(ctx, t.raw)
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
		t.refusal = keyInvalid("The message's idempotency key is invalid.", safeError(err))
		t.refusal.forNow = b.opts.Key != nil
	case text == "" && b.g.opts.KeyOptional:
		t.unguarded = true
	case text == "":
		t.refusal = keyMissing("The message has no idempotency key.")
	default:
		who.Key = text
		p, parts := t.payload(b.opts.FingerprintAttributes)
		t.call = b.g.newCall(who, p, parts...)
		t.call.repeated = b.opts.Repeated != nil && b.opts.Repeated(t.raw)
		b.warnOfOwnID(t)
	}
}

// warnOfOwnID logs a warning, once, if policy Hold is set and the key of a message is the
// id that the source gave it. If such a message is sent again, it has a new id, and Hold
// does not prevent a second run.
func (b *messageGuard[E, M]) warnOfOwnID(t *batchMessage[M]) {
	if b.g.opts.Policy != Hold || !t.call.who.OwnID {
		return
	}
	b.ownOnce.Do(func() {
		slog.Default().Warn("messages are guarded by the ids of their source: one that is sent or redriven anew has another, and runs though it is held; "+
			"let senders give a key ("+MessageKey+"), or set BatchOptions.Key", "source", t.source)
	})
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
			b.g.refused(ctx, t.call.who, t.refusal.Code.kind(), t.refusal)
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

// handlerOf returns the handler of one message. The handler's context ends after
// BatchOptions.Timeout. The lease lasts until the end of the invocation, so that no other
// attempt runs while a handler ignores the end of its context.
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

// discards reports whether to acknowledge a message that the guard has refused because of
// its key or payload. An acknowledged message is not delivered again. BatchOptions.Discard
// decides. discards does not call Discard, and returns false, in three cases:
//
//   - An earlier attempt may have begun the message and not finished it.
//   - The handler has run for the message and may have had an effect: without a lease, because of
//     Options.FailOpen, with a lease that another attempt took over, or with Options.Optimistic if
//     the handler made a guarded call.
//   - The user's code panicked before the message could run.
func (b *messageGuard[E, M]) discards(ctx context.Context, t *batchMessage[M]) (discard bool) {
	if b.opts.Discard == nil || t.end.refusal == nil || t.end.refusal.unfinished || t.end.ran || t.panicked {
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
			discard, t.end.err = false, errors.Join(why, safeError(&panicError{v, debug.Stack()}))
		}
	}()
	if !b.opts.Discard(ctx, t.raw, why) {
		return false
	}
	slog.Default().WarnContext(ctx, "a message was discarded: it is acknowledged, and this time it did not run", "source", t.source, "id", t.name, "error", why)
	return true
}

// noteUnguarded reports that a message runs unguarded. If the guard is switched off,
// noteUnguarded sends an EventSwitchedOff. Otherwise the message has no key, and
// noteUnguarded sends an EventBypassed and logs a warning, because the sender may have
// forgotten the key.
func (b *messageGuard[E, M]) noteUnguarded(ctx context.Context, t *batchMessage[M]) {
	b.g.bypassed(ctx)
	if !b.g.off {
		slog.Default().WarnContext(ctx, "a message without an idempotency key runs unguarded", "source", t.source, "id", t.name)
	}
}

// failed passes the error of a message to BatchOptions.OnFailure, or logs it if OnFailure
// is nil. It does not log a message that did not begin, because conclude logs one line for
// all of these.
func (b *messageGuard[E, M]) failed(ctx context.Context, t *batchMessage[M]) {
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
	b.opts.OnFailure(ctx, t.raw, t.end.err)
}

// recordID returns the id of the message's record, or "" if the message has none.
func (t *batchMessage[M]) recordID() string {
	if t.refusal != nil || t.unguarded {
		return ""
	}
	return t.call.id
}

// lambdaError returns the message's error in the form that gives Lambda the right errorType
// and message.
func (t *batchMessage[M]) lambdaError() error {
	if p := (*panicError)(nil); errors.As(t.end.err, &p) {
		return p.reported()
	}
	return t.end.lambdaError()
}

// failures returns the names of the messages that failed, without duplicates. It returns an
// error instead if Lambda must retry the whole batch: with BatchOptions.WholeBatch, or if a
// failed message has no name to report.
func (b *messageGuard[E, M]) failures(ctx context.Context, all []*batchMessage[M]) ([]string, error) {
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
		return nil, &BatchError{Messages: len(all), Errs: errorsOf(ctx, all)}
	}
	return names, nil
}

// errorsOf returns the errors of the messages that failed. lambdaError makes each error, so
// that Lambda reports the right errorType and message.
//
// The errors have another form if a guarded handler has called the handler of this batch.
// errorsOf then wraps each error in a passedOn, which hides marks such as Retryable: they
// describe the message, and must not decide about the record of the guarded handler. Two
// kinds of errors are not wrapped. The error of an unguarded message keeps its marks,
// because such a message has no record and runs as a part of the guarded handler. A
// replayed failure has no marks.
func errorsOf[M any](ctx context.Context, all []*batchMessage[M]) []error {
	inside := attemptOf(ctx) != nil
	var errs []error
	for _, t := range all {
		switch {
		case t.end.err == nil:
		case inside:
			errs = append(errs, t.end.returned(ctx))
		default:
			errs = append(errs, t.lambdaError())
		}
	}
	return errs
}

// reported returns a Lambda handler for events whose response lists the failed messages,
// such as an SQSEvent. The function answer makes the response from the names of the failed
// messages.
func reported[E, M, R any](b *messageGuard[E, M], answer func(names []string) R) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (R, error) {
		names, err := b.failures(ctx, b.runBatch(ctx, event))
		if err != nil {
			var none R
			return none, err
		}
		return answer(names), nil
	}
}

// failuresOf returns the list of batch item failures for a response.
func failuresOf[F any](names []string, failure func(name string) F) []F {
	all := make([]F, len(names)) // not nil, so that its JSON is an empty list and not null
	for i, name := range names {
		all[i] = failure(name)
	}
	return all
}

// wholeEvent returns a Lambda handler for events whose response Lambda ignores: asynchronous
// events, and batches of sources without partial batch responses. Lambda retries the whole event
// if the handler returns an error. If the event has a single message, that error is the message's
// error, and otherwise a BatchError.
func wholeEvent[E, M any](b *messageGuard[E, M]) func(context.Context, E) error {
	return func(ctx context.Context, event E) error {
		all := b.runBatch(ctx, event)
		switch errs := errorsOf(ctx, all); {
		case len(errs) == 0:
			return nil
		case len(all) == 1:
			return errs[0]
		default:
			return &BatchError{Messages: len(all), Errs: errs}
		}
	}
}
