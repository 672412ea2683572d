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

// Kind names what an [Event] tells of.
type Kind string

// The kinds. Those marked (!) are worth a warning.
const (
	EventNew          Kind = "new"           // the handler ran, its answer is stored
	EventReplayed     Kind = "replayed"      // a stored answer was given again
	EventInProgress   Kind = "in_progress"   // another attempt holds the lease
	EventAbandoned    Kind = "abandoned"     // (!) held for an operator
	EventMismatch     Kind = "mismatch"      // another payload under the same key
	EventKeyMissing   Kind = "key_missing"   // no key, refused
	EventKeyInvalid   Kind = "key_invalid"   // the key or the request was malformed, refused
	EventBypassed     Kind = "bypassed"      // ran unguarded: method, skip, or no key and keys are optional
	EventReleased     Kind = "released"      // the handler ran and its answer is not stored; a retry runs again
	EventUncertain    Kind = "uncertain"     // (!) the attempt's effects are unknown, its lease is kept
	EventLeaseLost    Kind = "lease_lost"    // (!) another attempt had taken over before this one ended
	EventTakenOver    Kind = "taken_over"    // (!) an attempt died and this one takes its place
	EventFailedOpen   Kind = "failed_open"   // (!) the store could not be reached, the handler runs unguarded
	EventStoreError   Kind = "store_error"   // (!) the store could not be reached or refused
	EventAnswerLost   Kind = "answer_lost"   // (!) the answer could not be stored; retries get 500, the handler never runs again
	EventOutOfTime    Kind = "out_of_time"   // (!) too little time was left to begin
	EventUnreadable   Kind = "unreadable"    // (!) the record is not ours, or damaged
	EventNoPrincipal  Kind = "no_principal"  // (!) the caller could not be told apart from others
	EventNeverStarted Kind = "never_started" // (!) a claim may hold its record though its handler never started: it could not be withdrawn
	EventSwitchedOff  Kind = "switched_off"  // (!) ran unguarded, since the guard is off by the environment
)

// warns reports whether a kind is worth a warning.
func (k Kind) warns() bool {
	switch k {
	case EventAbandoned, EventUncertain, EventLeaseLost, EventTakenOver, EventFailedOpen,
		EventStoreError, EventAnswerLost, EventOutOfTime, EventUnreadable, EventNoPrincipal, EventNeverStarted, EventSwitchedOff:
		return true
	default:
		return false
	}
}

// level returns the level that an event of that kind, with that error, is logged at.
func (k Kind) level(err error) slog.Level {
	switch {
	case k.warns(), k == EventNew && isPermanent(err), k == EventReleased && isWriteRejected(err):
		return slog.LevelWarn
	case k == EventBypassed: // every GET
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// isPermanent reports whether the handler marked err as Permanent. Nothing but a
// log line shows its cause: the record and the client get no more than its text.
func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// isWriteRejected reports whether err is that of an enlisted write that the
// handler's author has to mend: its condition failed and nothing says what that
// means, or it can't be made.
func isWriteRejected(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e != nil && (e.Code == ErrConditionFailed || e.Code == ErrWriteInvalid)
}

// kind returns the event that a refused request makes.
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

// Event is one outcome of one guarded call.
//
// Route tells people what was asked for, and may be anything that a client can
// send. Template never is: method and route template without a host, or the
// operation that the code or the source of a message names. It is empty where
// there is none: the path stands in for a template, or EventBridge's source and
// detail type, which senders choose, for BatchOptions.Operation.
type Event struct {
	Kind       Kind
	RecordID   string        // id of the record, as Guard.RecordID has it; empty where the request has none
	Scope      string        // the record's identity in one readable text, but for the key
	Route      string        // what was asked for: method, host and route template or path; or the operation
	Template   string        // what was asked for, as one of few, to count by; see below
	Caller     string        // whose key it is: the principal, and the tenant where there is one
	Key        string        // a short hash of the key, or the key if Options.ShowKeys; empty without one
	Attempt    int           // attempt number; 0 where no attempt was begun
	Duration   time.Duration // since the call began
	Handler    time.Duration // spent in the handler; 0 if it did not run
	Store      time.Duration // spent in the store, but for the handler's own steps; 0 if it was not asked
	Messages   int           // how many messages of a batch the event is about: of an EventOutOfTime, those that had no time to begin; else 0
	Cached     bool          // the record is from the process's own memory: the store was not asked
	Invocation string        // Lambda's request id; empty outside Lambda and where the call has no record
	TokenHash  string        // of an EventNeverStarted: the TokenHash of the claim's fencing token; else empty
	Reason     Reason        // why the store failed, where it did
	Throttle   Throttle      // which limit a throttled store ran into, where it said so
	Err        error         // what went wrong, where something did
}

// Observer is told each outcome, on the goroutine of the call: it should be
// quick, must be safe for concurrent use, and must not panic.
type Observer interface {
	Observe(context.Context, Event)
}

// ObserverFunc is a function as an [Observer].
type ObserverFunc func(context.Context, Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Discard is the observer that ignores every event.
var Discard Observer = discard{}

type discard struct{}

func (discard) Observe(context.Context, Event) {}

// unobserved reports whether nobody looks at an event of that kind with that
// error, so that it need not be made.
func (g *Guard) unobserved(kind Kind, err error) bool {
	return ignores(g.opts.Observer, kind, err)
}

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

// Observers tells several observers of each event, in their order. To add one to
// those that a guard has, the default included:
//
//	o.Observer = lambdaidem.Observers(o.Observer, metrics)
//
// Nil ones are left out.
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

// SlogObserver logs each event with log/slog. It logs at slog.LevelWarn the kinds
// that are marked (!), an EventNew whose error [Permanent] marked, and an
// EventReleased with [ErrConditionFailed] or [ErrWriteInvalid]; EventBypassed at
// slog.LevelDebug, since every GET makes one; and the rest at slog.LevelInfo.
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

// warnings logs what is worth a warning on slog.Default(), as it is set at the
// time of the event.
type warnings struct{}

func (warnings) Observe(ctx context.Context, e Event) {
	if e.Messages > 0 { // the batch logs one line by itself
		return
	}
	if e.Kind.level(e.Err) >= slog.LevelWarn {
		slogObserver{slog.Default()}.Observe(ctx, e)
	}
}

// keyLabel returns how a key stands in events: 12 hex digits of its SHA-256.
func (g *Guard) keyLabel(key string) string {
	if g.opts.ShowKeys || key == "" {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// TokenHash returns 32 hex digits that identify a fencing token: the first half of its
// SHA-256. A log may have it. The token itself lets its owner change the record.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:len(sum)/2])
}

// note tells the observer of an outcome of this call.
func (a *attempt) note(ctx context.Context, kind Kind, err error) {
	if a.g.unobserved(kind, err) {
		return
	}
	if a.scope == "" {
		a.scope = a.call.who.scope(a.g.readable(&a.call.who))
	}
	e := a.g.event(kind, &a.call.who, err)
	e.RecordID, e.Scope, e.Attempt, e.Handler, e.Store, e.Cached = a.id, a.scope, a.number, a.handler, a.stored, a.cached
	e.Invocation = a.invocation
	if kind == EventNeverStarted {
		e.TokenHash = TokenHash(a.token)
	}
	e.Duration, e.Reason, e.Throttle = a.g.opts.Clock().Sub(a.began), reasonOf(err), throttleOf(err)
	a.g.opts.Observer.Observe(ctx, e)
}

// refused reports a call that is refused before its record is known. If the handler of an
// attempt made the call, that attempt learns whether the call may be accepted later.
func (g *Guard) refused(ctx context.Context, who Identity, kind Kind, refusal *Error) {
	if outer := attemptOf(ctx); outer != nil {
		outer.recordInner(innerRecord{}, nil, decision{refusal: refusal})
	}
	e := g.event(kind, &who, refusal)
	e.Scope = who.scope(g.readable(&who))
	g.opts.Observer.Observe(ctx, e)
}

// bypassed counts a call that runs unguarded.
func (g *Guard) bypassed(ctx context.Context) {
	runcount.Add(ctx)
	kind := EventBypassed
	if g.off {
		kind = EventSwitchedOff
	}
	g.opts.Observer.Observe(ctx, Event{Kind: kind})
}

// event says who called for what.
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
