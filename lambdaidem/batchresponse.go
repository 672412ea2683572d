package lambdaidem

import (
	"context"
	"fmt"
)

// failures returns the item identifiers (message.name) of the messages that failed, without
// duplicates. It returns an error instead if Lambda must retry the whole batch: with
// BatchOptions.WholeBatch, or if a failed message has no item identifier.
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

// reported returns a Lambda handler for a source with partial batch responses, such as SQS. The
// Lambda handler runs the guarded handler b for the messages of an event. It then returns
// makeResponse(names), where names are the item identifiers of the failed messages.
func reported[E, M, R any](b *messageGuard[E, M], makeResponse func(names []string) R) func(context.Context, E) (R, error) {
	return func(ctx context.Context, event E) (R, error) {
		names, err := b.failures(ctx, b.runBatch(ctx, event))
		if err != nil {
			var none R
			return none, err
		}
		return makeResponse(names), nil
	}
}

// failuresOf returns the list of batch item failures for a response: failure(name) for each item
// identifier in names.
func failuresOf[F any](names []string, failure func(name string) F) []F {
	all := make([]F, len(names)) // not nil, so that its JSON is an empty list and not null
	for i, name := range names {
		all[i] = failure(name)
	}
	return all
}

// wholeEvent returns a Lambda handler for events whose response Lambda ignores: asynchronous
// events, and batches of sources without partial batch responses. Lambda retries the whole event if
// this Lambda handler returns an error. The error is the message's error if the event has a single
// message, and a *BatchError otherwise.
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

// errorsOf returns the errors of the messages that failed. If Lambda receives the errors, each is
// in the form that lambdaError returns. If an outer guarded handler receives them, their marks,
// such as Retryable, are hidden: they describe the message and not the outer handler.
func errorsOf[M any](ctx context.Context, all []*batchMessage[M]) []error {
	inside := attemptOf(ctx) != nil
	var errs []error
	for _, t := range all {
		switch {
		case t.end.err == nil:
		case inside:
			errs = append(errs, t.end.callersError(ctx))
		default:
			errs = append(errs, t.lambdaError())
		}
	}
	return errs
}

// lambdaError returns the message's error without marks and wrappers, whose types Lambda would
// report as the errorType.
func (t *batchMessage[M]) lambdaError() error {
	if p, ok := t.end.err.(*panicError); ok { //nolint:errorlint // a panic inside an inner call is not that of the handler
		return p.reported()
	}
	return t.end.lambdaError()
}

// BatchError is the error of a whole event, which makes Lambda retry all of its messages. A
// handler returns a BatchError if messages have failed and one of the following holds:
//
//   - BatchOptions.WholeBatch is set.
//   - A failed message has no item identifier.
//   - The event has several messages, and Lambda does not support partial batch responses for its
//     source. Such sources are asynchronous events, Amazon MQ and Amazon DocumentDB.
//
// errors.Is and errors.As examine the errors of all messages.
type BatchError struct {
	Messages int     // the number of messages in the batch
	Errs     []error // the errors of the messages that failed, in the order of the batch
}

// Error returns the number of failures and the text of the first one.
func (e *BatchError) Error() string {
	return fmt.Sprintf("%d of %d messages failed; the first: %v", len(e.Errs), e.Messages, e.Errs[0])
}

// Unwrap returns Errs.
func (e *BatchError) Unwrap() []error { return e.Errs }
