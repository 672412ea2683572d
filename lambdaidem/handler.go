package lambdaidem

import "context"

// HandlerOptions are the settings of one [Handler]. The zero value of every
// field is its default.
type HandlerOptions[In any] struct {
	// Principal tells whose key it is, where callers must be kept apart. An
	// error is a refusal, ErrPrincipalUnknown unless [Reject] made it; so is an
	// empty principal, unless Options.AnonymousCallers is set. Default: nil, all
	// invokers share their keys, but for Lambda's tenants.
	Principal func(context.Context, In) (string, error)
	// Skip lets an event pass unguarded. Default: none is skipped.
	Skip func(context.Context, In) bool
}

// Handler guards a typed Lambda handler. operation says what it does,
// "charge" say: two handlers of one guard must have two names, since with the
// key it identifies the record; Handler panics if it is empty. key finds
// the idempotency key in the event or in the context, or makes one of it by
// [HashKey] or the jmeskey package; an empty one is a missing key, and an error
// is ErrKeyInvalid unless [Reject] made it. The payload is the JSON of the event as In.
//
// A replay is the same bytes on the wire as the first answer; see [Do] for
// what that means for results that hold interfaces.
//
// Lambda reports a refusal of the guard with its code as the errorType,
// "idempotency_in_progress" for one, so that a state machine can catch it by name;
// what the store said stays in the log. In the process errors.Is finds the code and
// errors.As the *[Error].
//
// The errorType of an error of h is the name of its Go type, as without a guard, or
// the code if [Reject] made the error, except that a code of this package is reported
// as "Error". Handler returns a rejection as a messages.InvokeResponse_Error of package
// aws-lambda-go, which wraps nothing. An error that [Permanent], [Retryable] or
// [Uncertain] marks has the errorType of the marked error. If the error is stored,
// every replay reports the first errorType and message.
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
		if runOf(ctx) != nil { // the caller is a guarded handler, which needs the marks, and not Lambda
			return got.value, got.err
		}
		return got.value, got.lambdaError()
	}
}

func handle[In, Out any](
	ctx context.Context, g *Guard, operation string, key func(context.Context, In) (string, error),
	h func(context.Context, In) (Out, error), in In, o *HandlerOptions[In],
) done[Out] {
	who := Identity{Namespace: g.opts.Namespace, Tenant: tenantOf(ctx), Operation: operation, Handler: true}
	c := Call{Operation: operation, Payload: in, Skip: g.off || o.Skip != nil && o.Skip(ctx, in)}
	refuse := func(kind Kind, e *Error) done[Out] {
		g.refused(ctx, who, kind, e)
		return refusedDo[Out](e)
	}
	if !c.Skip {
		var err error
		if c.Key, err = key(ctx, in); err != nil {
			refusal := keyUnread("event", err)
			return refuse(keyKind(refusal), refusal)
		}
		who.Key = c.Key
		if o.Principal != nil && (c.Key != "" || !g.opts.KeyOptional) {
			var refusal *Error
			who.Principal, err = o.Principal(ctx, in)
			if who.Principal, refusal = g.named(who.Principal, err, "HandlerOptions.Principal"); refusal != nil {
				return refuse(EventNoPrincipal, refusal)
			}
		}
	}
	return do(ctx, g, who, c, func(ctx context.Context) (Out, error) { return h(ctx, in) })
}
