package lambdaidem

import (
	"context"
	"log/slog"
)

// SlogObserver returns an observer that logs each event with logger:
//
//   - at slog.LevelWarn each event of a kind that is marked (!) in the list of Kind constants, such
//     as [EventStoreError]. The same level applies to an [EventNew] if the handler marked its error
//     as [Permanent], and to an [EventReleased] if its error is [ErrConditionFailed] or
//     [ErrWriteInvalid];
//   - at slog.LevelDebug an [EventBypassed], because every GET makes one;
//   - at slog.LevelInfo all other events.
func SlogObserver(logger *slog.Logger) Observer { return slogObserver{logger} }

type slogObserver struct{ logger *slog.Logger }

func (o slogObserver) Observe(ctx context.Context, e Event) {
	level := e.Kind.level(e.Err)
	if !o.logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs, slog.String("outcome", string(e.Kind)),
		slog.String("record", e.RecordID), slog.String("route", e.Route), slog.String("caller", e.Caller),
		slog.String("scope", e.Scope), slog.String("key", e.Key),
		slog.Int("attempt", e.Attempt), slog.Duration("duration", e.Duration))
	if e.Handler > 0 {
		attrs = append(attrs, slog.Duration("handler", e.Handler))
	}
	if e.Kind == EventNeverStarted {
		attrs = append(attrs, slog.String("invocation", e.Invocation), slog.String("token_hash", e.TokenHash))
	}
	if e.Messages > 0 {
		attrs = append(attrs, slog.Int("messages", e.Messages))
	}
	if e.Cached {
		attrs = append(attrs, slog.Bool("cached", true))
	}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
	}
	if e.Throttle != "" {
		attrs = append(attrs, slog.String("throttle", string(e.Throttle)))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	o.logger.LogAttrs(ctx, level, "idempotency", attrs...)
}

// warnings is the default observer. It logs the events that SlogObserver logs as warnings. It
// calls slog.Default for each event, so a default logger that is set later applies too.
type warnings struct{}

func (warnings) Observe(ctx context.Context, e Event) {
	if e.Messages > 0 { // messageGuard.conclude logs these messages, or passes them to BatchOptions.OnFailure
		return
	}
	if e.Kind.level(e.Err) >= slog.LevelWarn {
		slogObserver{slog.Default()}.Observe(ctx, e)
	}
}
