package lambdaidem

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
)

// discards reports whether to acknowledge, and so drop, a message that the guard has refused
// because of its key or payload. BatchOptions.Discard decides, except in these cases, in which the
// message is kept:
//
//   - An earlier attempt may have begun the message and not finished it.
//   - The handler ran for the message, although the guard then refused it, and may have had an
//     effect.
//   - The user's code panicked before the handler could run for the message.
func (b *messageGuard[E, M]) discards(ctx context.Context, t *batchMessage[M]) (discard bool) {
	if b.opts.Discard == nil || t.end.refusal == nil || t.end.refusal.unfinished || t.end.ran || t.panicked {
		return false
	}
	switch t.end.refusal.Code {
	case ErrKeyMissing, ErrKeyInvalid, ErrPayloadMismatch:
	default:
		return false
	}
	cause := t.end.err
	defer func() {
		if v := recover(); v != nil {
			discard, t.end.err = false, errors.Join(cause, safeError(&panicError{v, debug.Stack()}))
		}
	}()
	if !b.opts.Discard(ctx, t.raw, cause) {
		return false
	}
	slog.Default().WarnContext(ctx, "a message was discarded: it is acknowledged without an effect", "source", t.source, "id", t.name, "error", cause)
	return true
}
