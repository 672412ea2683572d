package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Kind is the kind of an [Event]: what has happened to a call.
type Kind string

// The kinds of events. [SlogObserver] logs the kinds marked (!) as warnings.
const (
	EventNew          Kind = "new"           // the handler ran, and its answer is stored
	EventReplayed     Kind = "replayed"      // a stored answer was returned without running the handler
	EventInProgress   Kind = "in_progress"   // refused: another attempt is running
	EventAbandoned    Kind = "abandoned"     // (!) refused: an attempt died, and an operator must decide about the record
	EventMismatch     Kind = "mismatch"      // refused: the key was used with another payload, or may have been
	EventKeyMissing   Kind = "key_missing"   // refused: there is no key
	EventKeyInvalid   Kind = "key_invalid"   // refused: the key or the request is malformed or too large
	EventBypassed     Kind = "bypassed"      // ran unguarded because of its method, Skip or KeyOptional
	EventReleased     Kind = "released"      // the handler ran, its answer is not stored, and a retry runs it again
	EventUncertain    Kind = "uncertain"     // (!) the attempt may have had effects; once its lease has ended, the policy decides what happens
	EventLeaseLost    Kind = "lease_lost"    // (!) another attempt took over the record before this one had finished
	EventTakenOver    Kind = "taken_over"    // (!) this attempt took over the record of an attempt that died
	EventFailedOpen   Kind = "failed_open"   // (!) a store request failed; the handler runs without a lease (Options.FailOpen)
	EventStoreError   Kind = "store_error"   // (!) a store request failed; see Event.Reason
	EventAnswerLost   Kind = "answer_lost"   // (!) the handler ran, but its answer could not be stored; every retry gets 500
	EventOutOfTime    Kind = "out_of_time"   // (!) too little time was left to run the handler
	EventUnreadable   Kind = "unreadable"    // (!) the record is damaged or was written by another tool, or its answer can't be decoded
	EventNoPrincipal  Kind = "no_principal"  // (!) refused: the caller could not be identified
	EventNeverStarted Kind = "never_started" // (!) the handler did not start, but its record may be in progress, because the release failed
	EventSwitchedOff  Kind = "switched_off"  // (!) ran unguarded because the environment variable SwitchOff is set
)

// warns reports whether an event of this kind is logged as a warning, whatever its error is.
func (k Kind) warns() bool {
	switch k {
	case EventAbandoned, EventUncertain, EventLeaseLost, EventTakenOver, EventFailedOpen,
		EventStoreError, EventAnswerLost, EventOutOfTime, EventUnreadable, EventNoPrincipal, EventNeverStarted, EventSwitchedOff:
		return true
	default:
		return false
	}
}

// level returns the level at which an event of this kind, with the error err, is logged.
func (k Kind) level(err error) slog.Level {
	switch {
	case k.warns(), k == EventNew && isPermanent(err), k == EventReleased && isWriteRejected(err):
		return slog.LevelWarn
	case k == EventBypassed: // sent for every GET
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// isPermanent reports whether the handler marked err as Permanent. Such an error is logged as a
// warning, because only the log has the whole error. The record and the client get at most the
// error's text.
func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// isWriteRejected reports whether err shows a mistake in an enlisted write: the write is
// invalid, or its condition failed and the handler has not said what the failure means.
func isWriteRejected(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && (e.Code == ErrConditionFailed || e.Code == ErrWriteInvalid)
}

// kind returns the kind of event to send for a request that is refused with code c.
func (c Code) kind() Kind {
	switch c {
	case ErrKeyMissing:
		return EventKeyMissing
	case ErrKeyInvalid, ErrRequestInvalid, ErrBodyTooLarge, ErrBodyUnknown, ErrHeadersTooMany, ErrURITooLong:
		return EventKeyInvalid
	case ErrNotBegun:
		return EventOutOfTime
	default:
		return EventNoPrincipal
	}
}

// Event describes one outcome of one guarded call. A call may send several events, such as
// EventTakenOver and then EventNew.
//
// Route is for people. It may contain a path, which a client can choose freely.
//
// Template is for metrics, because it has a limited number of values. For an HTTP request,
// it is the method and the route template, without the host. For any other call, it is the
// operation. Template is empty if an HTTP request has no route template. It is also empty
// for an EventBridge event without BatchOptions.Operation: the default operation contains
// the source and the detail type, which the sender chooses.
type Event struct {
	Kind       Kind
	RecordID   string        // id of the record, as Guard.RecordID returns it; empty if the call ran unguarded, or was refused before its record was looked up
	Scope      string        // namespace, method, route, caller and tenant in one text; see ParseScope
	Route      string        // method, host and route template or path; or the operation
	Template   string        // method and route template, or the operation; a label for metrics, see above
	Caller     string        // the principal, and the tenant if there is one
	Key        string        // a short hash of the key, or the key itself with Options.ShowKeys; empty if there is no key
	Attempt    int           // attempt number; 0 if the call has none
	Duration   time.Duration // time since the call began
	Handler    time.Duration // time spent in the handler; 0 if it did not run
	Store      time.Duration // time spent in requests to the store, except those for steps, which are part of Handler
	Messages   int           // in the EventOutOfTime of a batch, the number of messages that did not begin for lack of time; otherwise 0
	Cached     bool          // the record came from Options.Cache, without a request to the store
	Invocation string        // Lambda's request id; empty outside Lambda, and if RecordID is empty
	TokenHash  string        // TokenHash of the attempt's fencing token, in an EventNeverStarted; otherwise empty
	Reason     Reason        // why a store request failed; empty if none did
	Throttle   Throttle      // the capacity limit that a throttled store request exceeded, if it is known
	Err        error         // the error that caused the outcome; nil if there is none
}

// Observer receives an [Event] for each outcome. The guard calls Observe on the goroutine
// of the call and waits for it, so Observe should be fast. It must be safe for concurrent
// use, and must not panic.
type Observer interface {
	Observe(context.Context, Event)
}

// ObserverFunc is an adapter that lets a function be used as an [Observer].
type ObserverFunc func(context.Context, Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Discard is the observer that ignores every event.
var Discard Observer = discard{}

type discard struct{}

func (discard) Observe(context.Context, Event) {}

// unobserved reports whether the observer is known to ignore events of this kind with this
// error. The guard then does not make the event.
func (g *Guard) unobserved(kind Kind, err error) bool {
	return ignores(g.opts.Observer, kind, err)
}

// ignores reports whether o is one of this package's observers and ignores events of this
// kind with this error.
func ignores(o Observer, kind Kind, err error) bool {
	switch o := o.(type) {
	case discard:
		return true
	case warnings:
		return kind.level(err) < slog.LevelWarn
	case observers:
		return !slices.ContainsFunc(o, func(each Observer) bool { return !ignores(each, kind, err) })
	}
	return false
}

// Observers returns an observer that passes each event to several observers, in their
// order. It ignores nil observers. In an option function, Observers adds an observer to
// the one that the guard has, such as the default:
//
//	o.Observer = lambdaidem.Observers(o.Observer, metrics)
func Observers(several ...Observer) Observer {
	all := slices.DeleteFunc(slices.Clone(several), func(o Observer) bool { return o == nil || o == Discard })
	switch len(all) {
	case 0:
		return Discard
	case 1:
		return all[0]
	}
	return observers(all)
}

type observers []Observer

func (all observers) Observe(ctx context.Context, e Event) {
	for _, o := range all {
		o.Observe(ctx, e)
	}
}

// SlogObserver returns an observer that logs each event with logger:
//
//   - at slog.LevelWarn each event whose Kind constant is marked (!) in its comment. The same
//     level applies to an [EventNew] if the handler marked its error as [Permanent], and to an
//     [EventReleased] if its error is [ErrConditionFailed] or [ErrWriteInvalid];
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

// keyLabel returns Event.Key: the first 12 hex digits of the key's SHA-256, or the key itself
// with Options.ShowKeys.
func (g *Guard) keyLabel(key string) string {
	if g.opts.ShowKeys || key == "" {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// TokenHash returns the first 32 hex digits of the SHA-256 of a fencing token. Log the hash
// and not the token, because anyone who has the token can change the record.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:len(sum)/2])
}

// report sends an event about this call to the observer. err is the error that caused the
// outcome, or nil.
func (a *attempt) report(ctx context.Context, kind Kind, err error) {
	if a.g.unobserved(kind, err) {
		return
	}
	if a.scope == "" {
		a.scope = a.call.who.scope(a.g.readable(&a.call.who))
	}
	e := a.g.event(kind, &a.call.who, err)
	e.RecordID, e.Scope, e.Attempt, e.Handler, e.Store, e.Cached = a.id, a.scope, a.number, a.inHandler, a.inStore, a.cached
	e.Invocation = a.invocation
	if kind == EventNeverStarted {
		e.TokenHash = TokenHash(a.token)
	}
	e.Duration, e.Reason, e.Throttle = a.g.opts.Clock().Sub(a.began), reasonOf(err), throttleOf(err)
	a.g.opts.Observer.Observe(ctx, e)
}

// refused sends the event of a call that is refused before its record is looked up. If a
// guarded handler made the call, refused also records the refusal in that handler's attempt,
// because the refusal can prevent the handler's own answer from being stored. See
// attempt.recordInner.
func (g *Guard) refused(ctx context.Context, who Identity, kind Kind, refusal *Error) {
	if outer := attemptOf(ctx); outer != nil {
		outer.recordInner(innerRecord{}, nil, decision{refusal: refusal})
	}
	e := g.event(kind, &who, refusal)
	e.Scope = who.scope(g.readable(&who))
	g.opts.Observer.Observe(ctx, e)
}

// bypassed sends the event of a call that runs unguarded.
func (g *Guard) bypassed(ctx context.Context) {
	runcount.Add(ctx)
	kind := EventBypassed
	if g.off {
		kind = EventSwitchedOff
	}
	g.opts.Observer.Observe(ctx, Event{Kind: kind})
}

// event returns an event with the fields that follow from the identity of a call.
func (g *Guard) event(kind Kind, who *Identity, err error) Event {
	e := Event{Kind: kind, Route: g.readable(who), Caller: scopePart(who.Principal), Key: g.keyLabel(who.Key), Err: err}
	if who.Method != "" {
		e.Route = scopePart(who.Method) + " " + e.Route
	}
	e.Template = who.template(e.Route)
	if who.Tenant != "" {
		e.Caller += " " + scopePart(who.Tenant)
	}
	return e
}
