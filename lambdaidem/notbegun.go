package lambdaidem

import (
	"context"
	"log/slog"
)

// conclude sets the error of each message that did not begin, or whose handler called
// runtime.Goexit. It sends one event for all messages that lacked the time to begin. It also logs
// one line for all messages that did not begin, unless BatchOptions.OnFailure is set. It does not
// log a line for each message, because there is no time for that near the deadline.
func (b *messageGuard[E, M]) conclude(ctx context.Context, all []*batchMessage[M], errs []error) {
	var idle, late []*batchMessage[M] // idle: all messages that did not begin; late: those that did not begin because too little time was left
	var cause error                   // the error to log: that of the first message in late; if there is none, that of the first message in idle
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
		if cause == nil || isLate && len(late) == 0 {
			cause = err
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
		slog.Default().WarnContext(ctx, "messages were not begun", "source", idle[0].source, "count", len(idle), "ids", firstNames(idle), "why", cause)
	}
}

// notBegunInside tells the attempt of the outer handler, if there is one, that the message t did not
// begin and may succeed later. The outer handler is a guarded handler that called this batch
// handler. A failure of the outer handler is then not stored, so that a retry can run the message.
func (b *messageGuard[E, M]) notBegunInside(ctx context.Context, t *batchMessage[M]) {
	outer := attemptOf(ctx)
	if outer == nil {
		return
	}
	var rec innerRecord
	if t.refusal == nil && !t.unguarded {
		rec = innerRecord{b.g.storeKey, t.call.id}
	}
	outer.recordInner(0, rec, nil, decision{refusal: t.end.refusal})
}

// cutShort sends one EventOutOfTime for all messages that did not begin because too little
// time was left.
func (b *messageGuard[E, M]) cutShort(ctx context.Context, late []*batchMessage[M], cause error) {
	identity := late[0].call.identity
	identity.Key, identity.OwnID = "", false
	e := b.g.event(EventOutOfTime, &identity, cause)
	e.Scope, e.Messages = identity.scope(b.g.readable(&identity)), len(late)
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
