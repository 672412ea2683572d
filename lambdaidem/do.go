package lambdaidem

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
)

// Call describes one call of [Do].
type Call struct {
	// Operation names what fn does, such as "charge". Together with Key and Principal it
	// identifies the record, as the route does over HTTP. Required.
	Operation string
	// Key is the idempotency key. Options.ValidateKey must accept it. Required, unless
	// Options.KeyOptional is set.
	Key string
	// Principal is the caller to whom the key belongs. Two principals with the same key
	// have different records. Default: "", which means that all callers share their keys.
	Principal string
	// Payload is what a retry must repeat, such as the arguments of the operation. A call with the
	// same key and another Payload gets [ErrPayloadMismatch]. Default: nil, which is equal only to
	// nil.
	//
	// Payloads are compared as JSON. The order of members does not matter. A struct field is
	// ignored if encoding/json leaves it out, such as an unexported one, or writes the same for it
	// as for a zero value. The values that Options.FingerprintIgnore names are ignored too. If a
	// struct type has only fields that are left out, and no method such as MarshalJSON, all its
	// values would be equal. Do therefore refuses a struct of such a type with [ErrRequestInvalid],
	// unless the struct is zero.
	//
	// Use the same Go type in all calls of an operation, and do not let the client choose it. If
	// the type is not the one of the first call, the guard assumes that a deployment has changed
	// it, and can't find out whether the client has changed the payload. See docs/effects.md,
	// "Steps and downstream keys".
	Payload any
	// Repeated says that this call probably repeats an earlier one. The guard then first reads the
	// record, as with Options.Repeated over HTTP. If the record has the result, the read saves a
	// more expensive write, the guard's claim of the lease. Otherwise the read is an additional
	// cost.
	Repeated bool
	// Skip makes this call run unguarded, like Options.Skip for HTTP, and sends an
	// [EventBypassed].
	Skip bool
}

// Do calls fn and stores its result under a key. Later calls with the same key return the stored
// result and do not call fn.
//
// The result is stored as JSON, and every caller, including the first one, gets a value that is
// decoded from this JSON. Fields that encoding/json leaves out, such as unexported ones, are
// therefore zero. An interface that held a struct holds a map. One that held an int holds a
// float64, or a json.Number if a float64 can't represent the int.
//
// If the result can't be encoded as JSON, or can't be decoded again, Do sends an [EventAnswerLost].
// The first caller gets the result as fn returned it. Later callers get [ErrAnswerUnavailable].
//
// Do may be called inside a guarded handler. This inner call has a record of its own: a retry of
// the handler gets the stored result and does not run fn again. While fn runs, writes can be
// enlisted only in the transaction of the inner call. An inner call with the same operation and key
// as the handler is refused with [ErrRequestInvalid]. For how the outcome of the inner call affects
// the handler's record, see docs/effects.md, "Guarded calls inside a handler".
//
// Do returns the error that fn returned, or an error that wraps it. The error has an outcome like
// the error of a handler: see [Reject], [Permanent], [Uncertain] and [Retryable]. errors.Is and
// errors.As find everything in the error that fn returned, except:
//
//   - a guard's error about a step or a guarded call inside fn, and the code of that error
//   - [ErrRetryable] and [ErrPermanent], the codes of the marks [Retryable] and [Permanent], if
//     something else has decided the outcome, such as an error marked as [Uncertain]
//   - if the error is stored, such as one marked as Permanent: any Code or *Error that a replay
//     would lack
//
// Do wraps the error if one of these exceptions applies, or if a guarded handler has called Do. A
// mark such as Retryable that fn put on the error does not affect that handler's outcome, because
// the handler may have had effects of its own. A handler without effects can mark the error with
// Retryable again. If Do runs fn unguarded inside a guarded handler, for example because of
// Call.Skip, Do returns the error unchanged, and its marks affect the handler's outcome.
//
// If the stored result is a failure, Do returns an *[Error] with the failure's code, status and
// text. errors.Is then matches the code, and any error that [Reject] makes with the same code and
// status. It does not match other errors that fn returned, because they are not stored.
//
// If the guard refuses the call, Do returns an *Error with one of these codes: [ErrRequestInvalid],
// [ErrKeyMissing], [ErrKeyInvalid], [ErrPayloadMismatch], [ErrInProgress], [ErrAttemptAbandoned],
// [ErrStoreUnavailable], [ErrOutOfTime], [ErrOutcomeUnknown], [ErrAnswerUnavailable],
// [ErrAnswerUnreadable], [ErrRecordForeign], [ErrStreaming], or, because of a write that fn
// enlisted, [ErrConditionFailed] or [ErrWriteInvalid].
func Do[T any](ctx context.Context, g *Guard, c Call, fn func(context.Context) (T, error)) (T, error) {
	identity := Identity{Namespace: g.opts.Namespace, Tenant: tenantOf(ctx), Principal: c.Principal, Operation: c.Operation, Key: c.Key}
	got := do(ctx, g, identity, c, fn)
	return got.value, got.callersError(ctx)
}

// done is the result of a call of Do or of a typed handler, or of one message of a batch.
type done[T any] struct {
	value   T
	err     error
	outcome Outcome  // outcome of err, if fn has run and returned it; otherwise empty
	replay  *Failure // the stored failure, if err is made from it; otherwise nil
	refusal *Error   // equal to err if the guard refused the call; otherwise nil
	ran     bool     // the handler of a message has run, and may have had an effect, although the guard has then refused the message
	// storedAs is the *Error with the code and the status under which the record stores err. It is
	// nil if err is not stored, or is stored with the default code and status, those of
	// ErrPermanent.
	storedAs *Error
	rejected bool // the database has rejected the writes of fn, and err says so: it is the guard's, or the one that the write specifies
	merged   bool // the call ran without a record inside a guarded handler, as a part of that handler
}

func refusedDo[T any](e *Error) done[T] { return done[T]{err: e, refusal: e} }

// callersError returns the error of a call or message as the caller of Do, of a typed handler or of
// a batch receives it:
//
//   - If the call ran without a record inside a guarded handler, its error is returned unchanged.
//     The error's marks, such as Retryable, affect the handler's outcome.
//   - Otherwise, if a guarded handler made the call, the error is wrapped in an innerError, so that
//     no mark in it affects the handler's outcome.
//   - Otherwise, the error is wrapped only if that changes what errors.Is or errors.As finds.
func (d done[T]) callersError(ctx context.Context) error {
	if d.err == nil || d.merged {
		return d.err
	}
	e := &innerError{err: d.err, storedAs: d.storedAs}
	e.byGuard = d.refusal != nil || d.replay != nil || d.rejected && isOwnRejection(d.err)
	e.stored = d.outcome == OutcomeFailed || d.outcome == OutcomeSucceeded || d.replay != nil && d.replay.Code != ErrAnswerUnavailable
	e.retryable = d.outcome == OutcomeReleased && isRetryable(d.err)
	if runOf(ctx) == nil && !e.differs() {
		return d.err
	}
	return e
}

func do[T any](ctx context.Context, g *Guard, identity Identity, c Call, fn func(context.Context) (T, error)) done[T] {
	var zero T
	if c.Operation == "" {
		return refusedDo[T](requestInvalid("Call.Operation is empty; name what is done.", nil))
	}
	if streams[T]() {
		return refusedDo[T](streamRefused(fmt.Sprintf("a result of type %T", zero)))
	}
	identified := false
	defer recordUnidentified(ctx, &identified)
	refuse := func(kind Kind, e *Error) done[T] {
		identified = true
		g.refused(ctx, identity, kind, e)
		return refusedDo[T](e)
	}
	w := &doWork[T]{g: g, fn: fn}
	if g.switchedOff || c.Skip || c.Key == "" && g.opts.KeyOptional {
		identified = true
		g.bypassed(ctx)
		merged := attemptOf(ctx) != nil
		if merged { // the outer handler's guard decides by the error that this call returns
			w.run(ctx)
		} else if d := g.bypass(ctx, w); d.refusal != nil {
			return refusedDo[T](d.refusal)
		}
		got := w.handlerResult()
		got.merged = merged
		return got
	}
	if c.Key == "" {
		return refuse(EventKeyMissing, keyMissing("The call of "+c.Operation+" has no idempotency key."))
	}
	if err := g.opts.ValidateKey(c.Key); err != nil {
		return refuse(EventKeyInvalid, keyInvalid("The idempotency key is invalid: "+err.Error()+".", nil))
	}
	given, err := typedPayload(c.Payload, g.fingerprints.ignore)
	if err != nil {
		return refuse(EventKeyInvalid, requestInvalid("The payload can't be encoded as JSON.", err))
	}
	if reason := hiddenFrom(reflect.TypeFor[T](), false); reason != "" {
		return refuse(EventKeyInvalid, &Error{Code: ErrRequestInvalid, Status: http.StatusInternalServerError,
			Detail: "The result can't be stored.", Err: fmt.Errorf("a result of type %T would lose a part: %s", zero, reason)})
	}
	made := g.newCall(identity, given, c.Operation)
	made.repeated = c.Repeated
	identified = true
	d := g.handleCall(ctx, made, w)
	switch {
	case d.refusal != nil:
		return refusedDo[T](d.refusal)
	case !d.replays:
		return w.handlerResult()
	case d.failure != nil:
		err := d.failure.err()
		got := done[T]{err: err, replay: d.failure}
		if err.Code != ErrPermanent {
			got.storedAs = err
		}
		return got
	}
	return done[T]{value: w.storedResult}
}

// doWork implements the work interface for one call of Do.
type doWork[T any] struct {
	g            *Guard
	attempt      *attempt // the attempt that runs fn; nil if fn runs unguarded
	fn           func(context.Context) (T, error)
	result       T       // what fn returned, or the value of an Answer that replaces it
	err          error   // what fn returned, or the error that replaces it after a rejected transaction
	outcome      Outcome // outcome of err; empty while it is not known, and if err is nil
	refused      bool    // the database has rejected the writes that fn enlisted
	storedResult T       // the decoded stored result; zero unless the call is replayed
}

func (w *doWork[T]) replay(d decision) (err error) {
	if d.failure != nil {
		return nil
	}
	if w.storedResult, err = replayed[T](d.value); err != nil {
		return fmt.Errorf("decode the stored result into %T: %w", w.storedResult, err)
	}
	return nil
}

func (w *doWork[T]) run(ctx context.Context) {
	w.attempt = attemptOf(ctx)
	w.result, w.err = w.fn(ctx)
	w.answered()
}

// answered checks whether fn returned an error that the function Answer made. If so, the result of
// the call becomes the value that was passed to Answer, and the error becomes nil. If that value
// has the wrong type, the call's error becomes one that says so.
func (w *doWork[T]) answered() {
	a, ok := w.err.(*answerError) //nolint:errorlint // an error that wraps an Answer is an ordinary error
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
	w.result, w.err, w.refused = none, err, true
	w.answered()
	return w.ending()
}

func (w *doWork[T]) ending() ending {
	if w.err == nil {
		o, _ := w.attempt.decideOutcome(OutcomeSucceeded, success)
		return ending{outcome: o, success: true, encoded: true}
	}
	end := w.g.endingOfError(w.attempt, w.err)
	w.outcome = end.outcome
	return end
}

func (w *doWork[T]) encode() ([]byte, error) {
	text, first, err := storable(w.result)
	if err == nil {
		w.result = first
	}
	return text, err
}

// handlerResult returns the result of a call that has run fn, rather than replayed a stored result.
func (w *doWork[T]) handlerResult() done[T] {
	if w.err != nil && w.outcome == "" { // fn ran unguarded
		w.outcome = w.g.outcomeOfError(w.err, OutcomeFailed)
	}
	w.outcome = w.attempt.outcomeLeft(w.outcome)
	got := done[T]{value: w.result, err: w.err, outcome: w.outcome, rejected: w.refused}
	if w.err != nil && (w.outcome == OutcomeFailed || w.outcome == OutcomeSucceeded) {
		got.storedAs = w.g.decidingError(w.err, w.outcome, unmarked)
	}
	return got
}
