package simulator

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// In some plans the handler makes a guarded call, a charge. The records of charges are in their
// own table. The key of a charge contains the payload of the request, so a request with another
// payload would make another charge.

const innerTable = "charges"

// charge identifies a guarded call that a handler makes.
type charge struct{ record, payload string }

// innerOutcome is what a handler knows about the charge that it made.
type innerOutcome int

// The outcomes.
const (
	settled innerOutcome = iota // the charge has its final answer, or never had an effect
	refused                     // another call may get another answer later
	unknown                     // the charge may have had its effect
)

// newInner decides whether the handlers of a plan make inner calls. It draws from a random
// stream of its own, so that the rest of each plan does not depend on it.
func newInner(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0x122e8))
	p.inner = p.effects.optimistic < 1 && r.Float64() < 0.25
}

// openInner creates the table of the charges.
func (w *world) openInner() { w.mustServe("CreateTable", createTable(innerTable)) }

// innerGuard returns the guard of the charges. Like guard, it returns the same guard for all
// invocations of a process.
func (a *actor) innerGuard() *lambdaidem.Guard {
	if a.process == nil {
		return a.newInnerGuard(a)
	}
	if a.process.inner == nil {
		a.process.inner = a.newInnerGuard(a.process)
	}
	return a.process.inner
}

func (a *actor) newInnerGuard(in environment) *lambdaidem.Guard {
	p := &a.w.plan
	store := dynamostore.New(a.w.functions, innerTable, func(o *dynamostore.Options) {
		o.Random = a.rng.Float64
		o.Transport = a.transport()
		o.AttemptTimeout = 1_500_000_007 // as in newGuard
	})
	return lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Namespace = "charges"
		o.TTL, o.MaxSkew = p.ttl, p.maxSkew
		o.Clock, o.Random, o.Observer = a.clock, in, lambdaidem.Discard
	})
}

// The errors that the charging function may return.
var (
	errNoCharge   = lambdaidem.Retryable(errors.New("nothing was charged"))
	errDeclined   = lambdaidem.Permanent(errors.New("the card was declined"))
	errNoReply    = lambdaidem.Uncertain(errors.New("the card network did not reply"))
	chargeEndings = []error{errNoCharge, errDeclined, errNoReply}
)

// charge makes the inner call of a run.
func (a *actor) charge(ctx context.Context, r *run) {
	of := charge{r.record, a.order.Payload}
	bad := !a.w.isHealed() && a.rng.Float64() < 0.3
	how := chargeEndings[a.rng.IntN(len(chargeEndings))]
	call := lambdaidem.Call{Operation: "charge", Key: of.record + of.payload}
	if m := a.w.mut; m != nil && m.Inner != nil {
		ctx = m.Inner(ctx, &call, r)
	}
	ran, interrupted := false, false
	_, err := lambdaidem.Do(ctx, a.innerGuard(), call, func(ctx context.Context) (string, error) {
		ran = true
		began := time.Now()
		if interrupted = !a.sleep(ctx, time.Duration(a.rng.Int64N(int64(20*time.Millisecond)))); interrupted {
			return "", lambdaidem.Retryable(ctx.Err())
		}
		if !bad || how == errNoReply { //nolint:errorlint // one of chargeEndings itself
			a.w.journal.charged(r, of, began)
		}
		if bad {
			return "", how
		}
		return "charged", nil
	})
	left := innerOutcomeOf(err, ran, interrupted)
	id := a.innerGuard().RecordID(lambdaidem.Identity{Operation: "charge", Key: of.record + of.payload})
	switch released := errors.Is(err, errNoCharge) || interrupted; {
	case !released || left != settled:
	case a.w.journal.innerDied(id): // nobody knows what the dead attempt did
		left = refused
	case !errors.Is(err, lambdaidem.ErrRetryable): // the release got no reply until the lease had ended, so another attempt may be charging
		left = refused
	}
	a.w.journal.chargeEnds(r, of, left, err, ran)
}

// innerWrote records a write to the record of an inner call.
func (b *journal) innerWrote(w memdynamo.Write) {
	b.changed = &w
	id := w.Key["id"].Text
	switch {
	case w.Op == "PutItem": // a new record
		delete(b.deadInner, id)
	case stateOf(w.Before) == inProgress && stateOf(w.After) == inProgress && w.Before["token"].Text != w.After["token"].Text:
		b.deadInner[id] = true
	}
}

// innerDied reports whether an attempt of the inner record has died.
func (b *journal) innerDied(id string) bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.deadInner[id]
}

// innerOutcomeOf returns what the handler knows about a charge that ended with err. ran says whether
// the charging function ran, interrupted whether it ended early without an effect.
func innerOutcomeOf(err error, ran, interrupted bool) innerOutcome {
	var refusal *lambdaidem.Error
	errors.As(err, &refusal)
	switch {
	case err == nil, errors.Is(err, errNoCharge), interrupted && refusal == nil:
		return settled
	case errors.Is(err, errNoReply):
		return unknown
	case refusal == nil, refusal.Code == lambdaidem.ErrPermanent: // errDeclined, first or replayed
		return settled
	case ran, refusal.Code == lambdaidem.ErrOutcomeUnknown:
		return unknown
	default:
		return refused
	}
}

// charged records that a run has charged the card. began is when the charging function began.
func (b *journal) charged(r *run, of charge, began time.Time) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	b.addLocked(entry{kind: kindEffect, actor: r.actor, text: "CHARGE for payload " + of.payload})
	b.judge.charged(r, of, began)
}

// chargeEnds records how a charge ended for a run.
func (b *journal) chargeEnds(r *run, of charge, left innerOutcome, err error, ran bool) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	r.inner = left
	b.noteLocked(r.actor, "the charge ends%s", because(err))
	switch {
	case left == refused:
		b.paths[InnerRefused]++
	case left == unknown:
		b.paths[InnerUnknown]++
	case err == nil && !ran:
		b.paths[InnerReplayed]++
	}
	if err == nil && ran {
		b.chargedAt[of] = time.Now()
	}
}

// leaves returns the state in which a run must leave its record. It is the state that belongs to
// the ending, unless the run's inner call is not settled. In a run without a record, the inner call
// makes no difference, because no guard decides about the answer.
func (r *run) leaves(how Ending) state {
	t := how.traits()
	left := t.under(r.actor.policy)
	success := how == Created || how == RefusedAnswer
	switch {
	case success || r.inner == settled || r.record == "":
		return left
	case r.inner == unknown, r.actor.underHold() && left == completed:
		return inProgress
	case left == completed:
		return released
	}
	return left
}

// innerText describes an inner call that is not settled, for the text of a violation. It returns ""
// if the call is settled.
func (r *run) innerText() string {
	switch r.inner { //nolint:exhaustive // there is nothing to say of a settled one
	case refused:
		return ", and its inner call was refused"
	case unknown:
		return ", and the outcome of its inner call is unknown"
	}
	return ""
}
