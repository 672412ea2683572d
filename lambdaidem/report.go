package lambdaidem

import (
	"context"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// report sends an event about this call to the observer. err is the error that caused the
// outcome, or nil.
func (a *attempt) report(ctx context.Context, kind Kind, err error) {
	if a.g.unobserved(kind, err) {
		return
	}
	if a.scope == "" {
		a.scope = a.call.identity.scope(a.g.readable(&a.call.identity))
	}
	e := a.g.event(kind, &a.call.identity, err)
	e.RecordID, e.Scope, e.Attempt, e.Handler, e.Store, e.Cached = a.id, a.scope, a.number, a.inHandler, a.inStore, a.cached
	e.Invocation = a.invocation
	if kind == EventNeverStarted {
		e.TokenHash = TokenHash(a.token)
	}
	e.Duration, e.Reason, e.Throttle = a.g.opts.Clock().Sub(a.clockStart), reasonOf(err), throttleOf(err)
	a.g.opts.Observer.Observe(ctx, e)
}

// refused sends the event of a call that is refused before its record is looked up. If a
// guarded handler made the call, refused also records the refusal in that handler's attempt,
// because the refusal can prevent the handler's own answer from being stored. See
// attempt.recordInner.
func (g *Guard) refused(ctx context.Context, identity Identity, kind Kind, refusal *Error) {
	if outer := attemptOf(ctx); outer != nil {
		outer.recordInner(0, innerRecord{}, nil, decision{refusal: refusal})
	}
	e := g.event(kind, &identity, refusal)
	e.Scope = identity.scope(g.readable(&identity))
	g.opts.Observer.Observe(ctx, e)
}

// bypassed sends the event of a call that runs unguarded.
func (g *Guard) bypassed(ctx context.Context) {
	runcount.Add(ctx)
	kind := EventBypassed
	if g.switchedOff {
		kind = EventSwitchedOff
	}
	g.opts.Observer.Observe(ctx, Event{Kind: kind})
}

// event returns an Event with the given kind and error, and with the fields that are derived from
// the identity of a call.
func (g *Guard) event(kind Kind, identity *Identity, err error) Event {
	e := Event{Kind: kind, Route: g.readable(identity), Caller: scopePart(identity.Principal), Key: g.keyLabel(identity.Key), Err: err}
	if identity.Method != "" {
		e.Route = scopePart(identity.Method) + " " + e.Route
	}
	e.Template = identity.template(e.Route)
	if identity.Tenant != "" {
		e.Caller += " " + scopePart(identity.Tenant)
	}
	return e
}

// template returns the value of Event.Template, which metrics use as a label. route is the value of
// Event.Route.
//
// A label must not have an unlimited number of values. template therefore returns "" for a request
// without a route template, because clients choose the path, and for an EventBridge event, because
// senders choose the operation.
func (i *Identity) template(route string) string {
	switch {
	case i.kind() == "path", i.Message && strings.HasPrefix(i.Operation, busOperation+":"):
		return ""
	case i.Host == "":
		return route
	case i.Method == "":
		return scopePart(i.resource())
	}
	return scopePart(i.Method) + " " + scopePart(i.resource())
}
