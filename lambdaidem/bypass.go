package lambdaidem

import (
	"context"
	"slices"
)

// bypasses reports whether a request runs unguarded, for example because Options.Skip says so. For
// such a request, it also sends an event: EventSwitchedOff if the guard is switched off, and
// otherwise EventBypassed.
func (g *Guard) bypasses(ctx context.Context, r *Request) bool {
	identified := false
	defer recordUnidentified(ctx, &identified)
	bypassed := g.passes(r.Method, r) || g.opts.Skip != nil && g.opts.Skip(r) || g.keyless(ctx, r)
	identified = true
	if bypassed {
		g.bypassed(ctx)
	}
	return bypassed
}

// passes reports whether a request runs unguarded for a reason that is known without its body:
//
//   - The guard is switched off.
//   - The method is not guarded. method must be in upper case.
//   - The key is optional, and the header that would contain it is missing.
//
// Middleware can then leave the body unread.
func (g *Guard) passes(method string, header interface{ Values(name string) []string }) bool {
	return g.switchedOff || !slices.Contains(g.opts.Methods, method) ||
		g.opts.KeyOptional && g.opts.Key == nil && len(header.Values(g.opts.KeyHeader)) == 0
}

// keyless reports whether a request runs unguarded because Options.Key returns no key for
// it. If the request exceeds a limit, keyless returns false without calling Options.Key. The
// guard then refuses the request, because nobody knows whether it has a key.
func (g *Guard) keyless(ctx context.Context, r *Request) bool {
	if g.opts.Key == nil || !g.opts.KeyOptional || g.outOfBounds(r) != nil {
		return false
	}
	d := g.derive(ctx, r)
	return d.err == nil && d.key == ""
}
