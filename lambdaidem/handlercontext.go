package lambdaidem

import "context"

// Attempt returns the number of the attempt whose handler has this context. The first
// attempt for a record has number 1. Each attempt after a release, or after the death
// of an attempt, has a higher number. Attempt returns 0 if no guard holds a lease for
// the handler.
func Attempt(ctx context.Context) int {
	if a := attemptOf(ctx); a != nil {
		return a.number
	}
	return 0
}

// Key returns the idempotency key of the guarded call whose handler has this context,
// for example to log it or pass it on. It returns "" if the call runs unguarded. Two
// callers may use the same key, so derive ids from [RecordID] instead.
func Key(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.call.identity.Key
	}
	return ""
}

// Principal returns the caller of the guarded call whose handler has this context, as the guard
// identified the caller: by Request.Principal, Options.Principal, HandlerOptions.Principal or
// Call.Principal. Pass the result to a [Do] inside the handler as Call.Principal, so that the
// inner call of one caller never gets the result of another caller. Principal returns "" if
// callers are anonymous, or if the call runs unguarded.
func Principal(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.call.identity.Principal
	}
	return ""
}

// RecordID returns the id of the record of the guarded call whose handler has this context: 54
// bytes of printable ASCII or, with Options.IDPrefix, up to 95. All attempts for the same key,
// caller and route have the same record, and so the same id. No other record has that id. A
// handler can therefore derive the ids of the items that it creates from the record's id. As an
// idempotency key for another service, use [DownstreamKey] instead. RecordID returns "" if the call
// runs unguarded.
func RecordID(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.id
	}
	return ""
}

// attemptOf returns the attempt whose handler has this context, or nil if the handler
// runs unguarded.
func attemptOf(ctx context.Context) *attempt {
	a := runOf(ctx)
	if a == nil || a.id == "" { // an unguarded run has no record
		return nil
	}
	return a
}

// runOf is like attemptOf, but it also returns the attempt without an id that stands for an
// unguarded run; see Guard.unguarded. If the context has no attempt, runOf returns nil.
func runOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

type attemptKey struct{}

// inContext returns a copy of ctx that carries the attempt. The functions runOf and
// attemptOf find the attempt in the copy.
func (a *attempt) inContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}
