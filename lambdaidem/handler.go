package lambdaidem

import (
	"context"
	"reflect"
)

// HandlerOptions are the options of [Handler].
type HandlerOptions[In any] struct {
	// Principal returns the caller that the key belongs to. If it returns an error, the event is
	// refused with [ErrPrincipalUnknown], or with the error itself if [Reject] made it. An empty
	// principal is refused too, unless Options.AnonymousCallers is set. Default: nil; all invokers
	// then share their keys. With Lambda's tenant isolation, only invokers of the same tenant share
	// keys.
	Principal func(context.Context, In) (string, error)
	// Skip reports whether to run the handler for an event unguarded. Default: nil, which skips no
	// event.
	Skip func(context.Context, In) bool
	// Repeated reports whether an event probably repeats an earlier one. If it returns true, the
	// guard reads the record before it tries to take the lease. This makes repetitions cheaper; see
	// Options.Repeated, which does the same for HTTP. Default: nil, which counts no event as a
	// repetition.
	//
	// For example, a state machine of Step Functions can put the RetryCount of its context object
	// into the input, and Repeated can return whether RetryCount is above 0. Name that field in
	// Options.FingerprintIgnore: it differs in each retry, and the guard refuses a retry with
	// another payload.
	Repeated func(context.Context, In) bool
}

// Handler guards a typed Lambda handler.
//
// operation names what the handler does, such as "charge". The name is part of the record's
// identity, so two handlers of one guard need two names. Handler panics if operation is empty.
//
// key returns the idempotency key of an event: a field of the event, or a key made by [HashKey] or
// package jmeskey. An empty key is refused with [ErrKeyMissing]. If key returns an error, the event
// is refused with [ErrKeyInvalid], or with the error itself if [Reject] made it.
//
// The payload, which must be the same under the same key, is the JSON of the decoded event; see
// [Call.Payload] for the fields that do not count. A replay has the same bytes as the first answer;
// see [Do] for results that hold interfaces.
//
// If the guard refuses an event, Lambda reports the code of the refusal as the errorType, such as
// "idempotency_in_progress", which a state machine can catch. The cause appears only in the log.
//
// If h returns an error, the errorType is the name of the error's Go type, as without a guard.
// There are three exceptions:
//
//   - An error made by [Reject]: the errorType is its code. If guards use that code for their own
//     refusals, the errorType is "Error" instead.
//   - An error marked by [Permanent], [Retryable] or [Uncertain]: the errorType is the type of the
//     error inside the mark.
//   - The refusal of a guarded call that h made: the errorType is the code of the refusal. If that
//     code would seem to refuse the event itself, such as "idempotency_payload_mismatch", the
//     errorType is "Error" instead.
//
// If an error is stored, every replay reports the errorType and the message of the first answer.
//
// A Go program can call the guarded handler too. If the guard refuses the event, errors.Is finds
// the code of the refusal, and errors.As an *[Error]. A stored error, or one made by [Reject], is
// returned as a messages.InvokeResponse_Error of aws-lambda-go, in which errors.As finds no *Error.
func Handler[In, Out any](
	g *Guard, operation string, key func(context.Context, In) (string, error),
	h func(context.Context, In) (Out, error), optFns ...func(*HandlerOptions[In]),
) func(context.Context, In) (Out, error) {
	if operation == "" {
		panic("lambdaidem: Handler: operation is empty; name what the handler does")
	}
	var o HandlerOptions[In]
	for _, fn := range optFns {
		fn(&o)
	}
	return func(ctx context.Context, in In) (Out, error) {
		got := handle(ctx, g, operation, key, h, in, &o)
		if runOf(ctx) != nil { // the caller is a guarded handler, which needs the marks that lambdaError removes
			return got.value, got.callersError(ctx)
		}
		return got.value, got.lambdaError()
	}
}

func handle[In, Out any](
	ctx context.Context, g *Guard, operation string, key func(context.Context, In) (string, error),
	h func(context.Context, In) (Out, error), in In, o *HandlerOptions[In],
) done[Out] {
	identified := false
	defer recordUnidentified(ctx, &identified)
	identity := Identity{Namespace: g.opts.Namespace, Tenant: tenantOf(ctx), Operation: operation, Handler: true}
	c := Call{Operation: operation, Payload: in, Skip: g.switchedOff || o.Skip != nil && o.Skip(ctx, in)}
	if reflect.TypeFor[In]().Kind() == reflect.Interface {
		// In is an interface type, so a client can choose the type of the value in it, for example
		// by sending a JSON string instead of an object. The guard can't compare payloads of
		// different types, and might accept a changed payload. So pass &in, which is always an *In.
		c.Payload = &in
	}
	c.Repeated = !c.Skip && o.Repeated != nil && o.Repeated(ctx, in)
	refuse := func(kind Kind, e *Error) done[Out] {
		identified = true
		g.refused(ctx, identity, kind, e)
		return refusedDo[Out](e)
	}
	if !c.Skip {
		var err error
		if c.Key, err = key(ctx, in); err != nil {
			refusal := keyUnread("event", err)
			return refuse(keyKind(refusal), refusal)
		}
		identity.Key = c.Key
		if o.Principal != nil && (c.Key != "" || !g.opts.KeyOptional) {
			var refusal *Error
			identity.Principal, err = o.Principal(ctx, in)
			if identity.Principal, refusal = g.named(identity.Principal, err, "HandlerOptions.Principal"); refusal != nil {
				return refuse(EventNoPrincipal, refusal)
			}
		}
	}
	identified = true
	return do(ctx, g, identity, c, func(ctx context.Context) (Out, error) { return h(ctx, in) })
}
