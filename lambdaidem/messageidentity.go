package lambdaidem

import (
	"context"
	"errors"
	"log/slog"
)

// identify finds the key of a message and decides how the message may run. It sets one of three
// fields of t:
//
//   - call, if the message may run with a record
//   - unguarded, if the message runs without a record
//   - refusal, if the message must not run
//
// If mayBegin returns an error, because too little time is left, identify sets refusal without
// looking for the key.
func (b *messageGuard[E, M]) identify(ctx context.Context, event E, t *batchMessage[M], mayBegin func() error) {
	defer func() {
		if v := recover(); v != nil {
			t.refusal = keyInvalid("The message's key could not be found.", safeError(&panicError{v, nil}))
			t.refusal.forNow, t.panicked = true, true
		}
	}()
	t.message = b.convert(event, t.raw)
	identity := Identity{Namespace: b.g.opts.Namespace, Tenant: tenantOf(ctx), Operation: b.opts.Operation, Message: true}
	defaultTo(&identity.Operation, t.source)
	defer func() {
		if t.call.identity == (Identity{}) {
			t.call.identity = identity
		}
	}()
	if t.unguarded = b.g.switchedOff; t.unguarded {
		return
	}
	if err := mayBegin(); err != nil { // BatchOptions.Key takes time too
		t.refusal = notBegun(err)
		return
	}
	if identity.Operation == "" {
		t.refusal = requestInvalid("The message names no source.", errNoSource)
		return
	}
	text, err := t.senderKey.text, t.senderKey.err
	switch {
	case b.opts.Key != nil:
		text, err = b.opts.Key(ctx, t.raw)
	case !t.senderKey.isSet:
		text, identity.OwnID = t.id, true
	case text == "" && err == nil: // an empty key is invalid, and not missing, like an empty header
		err = errors.New("it is empty")
	}
	if err == nil && text != "" && !identity.OwnID { // ValidateKey does not apply to ids that the source gave
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
		identity.Key = text
		p, parts := t.payload(b.opts.FingerprintAttributes)
		t.call = b.g.newCall(identity, p, parts...)
		t.call.repeated = b.opts.Repeated != nil && b.opts.Repeated(t.raw)
		b.warnOfOwnID(t)
	}
}

var errNoSource = errors.New("the message names no source: set BatchOptions.Operation")

// warnOfOwnID logs a warning, once, if the policy is Hold and the key of a message is the id that
// the source gave it. Hold prevents a second run of a message whose first run may have had effects.
// But if the sender sends the message again, the copy has a new id, and therefore a new record, and
// runs.
func (b *messageGuard[E, M]) warnOfOwnID(t *batchMessage[M]) {
	if b.g.opts.Policy != Hold || !t.call.identity.OwnID {
		return
	}
	b.ownOnce.Do(func() {
		slog.Default().Warn("messages are guarded by the ids of their source: one that is sent or redriven anew has another, and runs though it is held; "+
			"let senders give a key ("+MessageKey+"), or set BatchOptions.Key", "source", t.source)
	})
}
