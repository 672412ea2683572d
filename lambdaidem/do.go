package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
)

// Call names one call of [Do].
type Call struct {
	// Operation says what is done, "charge" say: with the key it identifies the
	// record, as a route does over HTTP. Required.
	Operation string
	// Key is the idempotency key, held to Options.ValidateKey.
	Key string
	// Principal is whose key it is, where callers must be kept apart.
	Principal string
	// Payload, if set, is what the call must have in common with the first one
	// under the key: its JSON by value. A nil payload fits a nil one.
	Payload any
	// Skip lets this call run unguarded, counted as bypassed, as Options.Skip
	// does over HTTP.
	Skip bool
}

// Do runs fn once for a key, and returns its first result again for every
// later call. The result is kept as JSON. A later caller's value has the
// same JSON as the first one's, which is fn's own, unless that could be rebuilt
// by value alone: then the first caller too gets it as later ones will, an
// interface that held a struct holding a map, say. What can't be rebuilt from
// its JSON at all is returned once, with an [EventAnswerLost]; later calls get
// [ErrAnswerUnavailable].
//
// A call with a guard and a key of its own inside a guarded handler is a record
// of its own: it stays done where the handler is run again. While it runs, nothing
// can be enlisted in the handler's transaction, only in its own; under the handler's
// own operation and key it is [ErrRequestInvalid]. That it was released
// says nothing of the handler around it, which under [Hold] says by a mark of its
// own whether something happened.
//
// Errors: what fn returned, by the rules of X2 ([Reject], [Permanent],
// [Uncertain], [Retryable]); an *[Error] with the code of a stored error that
// replays; or an *Error of the guard: [ErrRequestInvalid], [ErrKeyMissing],
// [ErrKeyInvalid], [ErrPayloadMismatch], [ErrInProgress],
// [ErrAttemptAbandoned], [ErrStoreUnavailable], [ErrOutOfTime],
// [ErrOutcomeUnknown], [ErrAnswerUnavailable], [ErrAnswerUnreadable],
// [ErrRecordForeign], [ErrStreaming], and for what fn enlisted [ErrConditionFailed]
// and [ErrWriteInvalid]. errors.Is tells them apart.
func Do[T any](ctx context.Context, g *Guard, c Call, fn func(context.Context) (T, error)) (T, error) {
	who := Identity{Namespace: g.opts.Namespace, Tenant: tenantOf(ctx), Principal: c.Principal, Operation: c.Operation, Key: c.Key}
	got := do(ctx, g, who, c, fn)
	return got.value, got.err
}

// done is how a call of Do ended, with what Handler must know beyond that.
type done[T any] struct {
	value T
	err   error
	// What err is, if there is one: the function's own, with its outcome; one
	// that replays; or the guard's refusal.
	outcome Outcome
	replay  *Failure
	refusal *Error
}

func refusedDo[T any](e *Error) done[T] { return done[T]{err: e, refusal: e} }

func do[T any](ctx context.Context, g *Guard, who Identity, c Call, fn func(context.Context) (T, error)) done[T] {
	var zero T
	refuse := func(kind Kind, e *Error) done[T] {
		g.refused(ctx, who, kind, e)
		return refusedDo[T](e)
	}
	if c.Operation == "" {
		return refusedDo[T](requestInvalid("Call.Operation is empty; name what is done.", nil))
	}
	if streams[T]() {
		return refusedDo[T](streamRefused(fmt.Sprintf("a result of type %T", zero)))
	}
	w := &doWork[T]{g: g, fn: fn, inside: attemptOf(ctx) != nil}
	if g.off || c.Skip || c.Key == "" && g.opts.KeyOptional {
		g.bypassed(ctx)
		if w.inside { // part of the outer handler, whose guard judges the error by its marks
			w.run(ctx)
			w.inside = false
		} else if d := g.bypass(ctx, w); d.refusal != nil {
			return refusedDo[T](d.refusal)
		}
		return w.own()
	}
	if c.Key == "" {
		return refuse(EventKeyMissing, keyMissing("The call of "+c.Operation+" has no idempotency key."))
	}
	if err := g.opts.ValidateKey(c.Key); err != nil {
		return refuse(EventKeyInvalid, keyInvalid("The idempotency key is invalid: "+err.Error()+".", nil))
	}
	given, err := typedPayload(c.Payload)
	if err != nil {
		return refuse(EventKeyInvalid, requestInvalid("The payload can't be encoded as JSON.", err))
	}
	if why := hiddenFrom(reflect.TypeFor[T](), false); why != "" {
		return refuse(EventKeyInvalid, &Error{Code: ErrRequestInvalid, Status: http.StatusInternalServerError,
			Detail: "The result can't be stored.", Err: fmt.Errorf("a result of type %T would lose a part: %s", zero, why)})
	}
	d := g.once(ctx, g.newCall(who, given, c.Operation), w)
	switch {
	case d.refusal != nil:
		return refusedDo[T](d.refusal)
	case !d.replays:
		return w.own()
	case d.failure != nil:
		return done[T]{err: d.failure.err(), replay: d.failure}
	}
	return done[T]{value: w.again}
}

// doWork is fn, as the guard runs it.
type doWork[T any] struct {
	g       *Guard
	attempt *attempt // whose function this is; nil if it runs unguarded
	fn      func(context.Context) (T, error)
	result  T
	err     error
	outcome Outcome
	inside  bool // a guarded handler
	again   T    // the result that replays
}

func (w *doWork[T]) replay(d decision) (err error) {
	if d.failure != nil {
		return nil
	}
	if w.again, err = replayed[T](d.value); err != nil {
		return fmt.Errorf("decode the stored result into %T: %w", w.again, err)
	}
	return nil
}

func (w *doWork[T]) run(ctx context.Context) {
	w.attempt = attemptOf(ctx)
	w.result, w.err = w.fn(ctx)
	w.answered()
}

// answered takes an Answer for what it stands for.
func (w *doWork[T]) answered() {
	a, ok := w.err.(*answerError) //nolint:errorlint // alone: what wraps it says otherwise
	if !ok {
		return
	}
	if v, err := answerAs[T](a.v); err != nil {
		w.err = err
	} else {
		w.result, w.err = v, nil
	}
}

func (w *doWork[T]) rejected(err error) ending {
	var none T
	w.result, w.err = none, err
	w.answered()
	return w.ending()
}

func (w *doWork[T]) ending() ending {
	if w.err != nil {
		var changed error
		w.outcome, changed = w.attempt.settle(w.g.outcomeOfError(w.err), false)
		return ending{outcome: w.outcome, err: w.err, changed: changed}
	}
	return ending{outcome: OutcomeSucceeded, success: true, encoded: true}
}

func (w *doWork[T]) encode() ([]byte, error) {
	if _, stream := any(w.result).(io.Reader); stream { // behind an interface
		return nil, streamRefused(fmt.Sprintf("a result of type %T", w.result))
	}
	text, first, err := storable(w.result)
	if err == nil {
		w.result = first
	}
	return text, err
}

// own is what the function itself returned.
func (w *doWork[T]) own() done[T] {
	if w.err != nil && w.outcome == "" { // it ran unguarded
		w.outcome = w.g.outcomeOfError(w.err)
	}
	if w.inside && w.err != nil && w.outcome == OutcomeReleased {
		return done[T]{value: w.result, err: &passedOn{w.err}, outcome: w.outcome}
	}
	return done[T]{value: w.result, err: w.err, outcome: w.outcome}
}

// streams tells whether a type is a stream, which can't be stored and replayed:
// the streaming responses of API Gateway and Function URLs, and any other
// io.Reader.
func streams[T any]() bool {
	t := reflect.TypeFor[T]()
	reader := reflect.TypeFor[io.Reader]()
	return t.Implements(reader) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reader)
}

func streamRefused(what string) *Error {
	return &Error{Code: ErrStreaming, Status: http.StatusInternalServerError,
		Detail: "A streaming response can't be stored and replayed.",
		Err:    errors.New(what + " is a stream; return the whole response, or leave this handler unguarded")}
}
