package lambdaidem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Call names one call of [Do].
type Call struct {
	// Operation says what is done, "charge" say: with the key it identifies the
	// record, as a route does over HTTP (F1). Required.
	Operation string
	// Key is the idempotency key, held to Options.ValidateKey (K2).
	Key string
	// Principal is whose key it is, where callers must be kept apart (F2).
	Principal string
	// Payload, if set, is what the call must have in common with the first one
	// under the key: its JSON by value (F5). A nil payload fits a nil one.
	Payload any
}

// Do runs fn once for a key, and returns its first result again for every
// later call (V1). The result is kept as JSON, so T must survive encoding/json;
// the first call returns fn's own value.
//
// Errors: what fn returned, by the rules of X2 ([Reject], [Permanent],
// [Uncertain]); an *[Error] with the code of a stored error that replays; or an
// *Error of the guard: [ErrKeyMissing], [ErrKeyInvalid], [ErrPayloadMismatch],
// [ErrInProgress], [ErrAttemptAbandoned], [ErrStoreUnavailable],
// [ErrOutOfTime], [ErrOutcomeUnknown], [ErrAnswerUnavailable],
// [ErrRecordForeign], [ErrStreaming]. errors.Is tells them apart.
func Do[T any](ctx context.Context, g *Guard, c Call, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if c.Operation == "" {
		return zero, requestInvalid("Call.Operation is empty; name what is done.", nil)
	}
	if streams[T]() {
		return zero, streamRefused(fmt.Sprintf("a result of type %T", zero))
	}
	if c.Key == "" {
		if g.opts.KeyOptional {
			runcount.Add(ctx)
			g.opts.Observer.Observe(ctx, Event{Kind: EventBypassed})
			return fn(ctx)
		}
		return zero, g.refuseCall(ctx, EventKeyMissing, c, keyMissing("The call of "+c.Operation+" has no idempotency key."))
	}
	if err := g.opts.ValidateKey(c.Key); err != nil {
		return zero, g.refuseCall(ctx, EventKeyInvalid, c, keyInvalid("The idempotency key is invalid: "+err.Error()+".", nil))
	}
	payload, err := json.Marshal(c.Payload)
	if _, raw := c.Payload.(json.RawMessage); err == nil && !raw && replacedBytes(payload) {
		err = errors.New("a text in it is not UTF-8; make it a []byte")
	}
	if err != nil {
		return zero, g.refuseCall(ctx, EventKeyInvalid, c, requestInvalid("The payload can't be encoded as JSON.", err))
	}

	who := identity{kind: "call", namespace: g.opts.Namespace, principal: c.Principal, route: c.Operation, key: c.Key}
	w := &doWork[T]{g: g, fn: fn}
	d := g.once(ctx, call{who: who, fingerprint: g.digest(true, payload, c.Operation)}, w)
	switch {
	case d.refusal != nil:
		return zero, d.refusal
	case d.replay == nil:
		return w.result, w.err
	case d.replay.Failure != nil:
		return zero, d.replay.Failure.err()
	}
	var replayed T
	if err := json.Unmarshal(d.replay.Value, &replayed); err != nil {
		err = fmt.Errorf("decode the stored result into %T: %w", replayed, err)
		return zero, g.refuseCall(ctx, EventUnreadable, c, recordForeign(err))
	}
	return replayed, nil
}

// doWork is fn, as the guard runs it.
type doWork[T any] struct {
	g      *Guard
	fn     func(context.Context) (T, error)
	result T
	err    error
}

func (w *doWork[T]) run(ctx context.Context) { w.result, w.err = w.fn(ctx) }

func (w *doWork[T]) ending() ending {
	if w.err != nil {
		return ending{outcome: w.g.outcomeOfError(w.err), err: w.err}
	}
	return ending{outcome: OutcomeSucceeded, encode: w.encode}
}

func (w *doWork[T]) encode() ([]byte, error) {
	if _, stream := any(w.result).(io.Reader); stream { // behind an interface
		return nil, streamRefused(fmt.Sprintf("a result of type %T", w.result))
	}
	return json.Marshal(w.result)
}

// replacedBytes tells whether encoding/json had to replace what is not UTF-8,
// which would make different payloads equal (F3). It writes such bytes as the
// escape \ufffd; the character U+FFFD itself it leaves as it is.
func replacedBytes(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return false
		}
		if bytes.HasPrefix(text[at:], []byte(`\ufffd`)) {
			return true
		}
		text = text[at+2:] // an escape is never the last byte
	}
}

func (g *Guard) refuseCall(ctx context.Context, kind Kind, c Call, e *Error) *Error {
	g.opts.Observer.Observe(ctx, Event{Kind: kind, Key: g.keyLabel(c.Key), Err: e})
	return e
}

// Handler guards a typed Lambda handler: key finds the idempotency key in the
// event, and the event's JSON is the payload (V1, F5). An empty key is a
// missing one. The guard's own refusals are *[Error]s, which Lambda reports
// with errorType "Error", without what the store said; what [Permanent] or
// [Reject] marked is reported with the same errorType and message every time
// (X2).
func Handler[In, Out any](g *Guard, key func(In) (string, error), h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		var zero Out
		k, err := key(in)
		if err != nil {
			return zero, g.refuseCall(ctx, EventKeyInvalid, Call{}, &Error{Code: ErrKeyInvalid, Status: http.StatusBadRequest,
				Detail: "No idempotency key could be found in the event.", Err: err})
		}
		var own error
		out, err := Do(ctx, g, Call{Operation: "invoke", Key: k, Payload: in}, func(ctx context.Context) (Out, error) {
			out, err := h(ctx, in)
			own = err
			return out, err
		})
		if own != nil && g.outcomeOfError(own) == OutcomeFailed && errors.Is(err, own) {
			f := failureOf(own)
			err = invokeError(f.Type, f.Message)
		} else if e := (*Error)(nil); errors.As(err, &e) && e.replayedType != "" {
			err = invokeError(e.replayedType, e.message)
		} else if refusal, ok := err.(*Error); ok && err != own { //nolint:errorlint // a refusal of Do itself, not what a handler wrapped
			shown := *refusal // X5: the invoker is a client; the observer has seen the cause
			shown.Err = nil
			err = &shown
		}
		return out, err
	}
}

// invokeError is an error whose errorType Lambda takes as it stands; any other
// error's it takes from the Go type.
func invokeError(errorType, message string) error {
	return messages.InvokeResponse_Error{Type: errorType, Message: message}
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
