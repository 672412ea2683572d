package simulator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// tokenUse is how a ClientRequestToken was used.
type tokenUse struct {
	body    string    // the first request's body
	applied time.Time // when its transaction was last applied; zero: never
}

// tokenLife is how long DynamoDB remembers a token.
const tokenLife = 10 * time.Minute

// arrives records that a transaction reaches the database.
func (b *journal) arrives(r *request, body []byte) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	token := r.tx.token
	if b.w.mut != nil {
		token = parseTransaction(body).token
	}
	s := b.tokens[token]
	if s == nil {
		s = &tokenUse{body: string(body)}
		b.tokens[token] = s
	}
	b.judge.arrives(r, s, string(body))
	if !s.applied.IsZero() && time.Since(s.applied) >= tokenLife {
		b.paths[TokenForgotten]++
		r.actor.stale = true
	}
	b.commit = &commit{request: r, token: s}
}

// commit is what the transaction that is served now writes.
type commit struct {
	request *request
	token   *tokenUse
	record  *history // the record that it wrote
	life    *life    // the record's life after the write
	before  state    // the record's state before the write
	paid    []*run   // the runs whose payments it wrote
	unknown int      // payments that belong to no run
	cents   int64    // the change of all balances together
	price   int64    // the change of the shop's balance
	writes  int
}

// account records a write to the table of accounts and payments.
func (b *journal) account(w memdynamo.Write) {
	c := b.commit
	if b.w.serving == nil || c == nil { // a write of the world itself, such as a deposit
		return
	}
	id := w.Key["id"].Text
	if number, ok := strings.CutPrefix(id, payment); ok {
		r := b.runOf(number)
		if r == nil {
			c.unknown++
			return
		}
		c.paid = append(c.paid, r)
		b.addLocked(entry{kind: kindEffect, actor: b.w.serving.actor, text: "EFFECT payment of process " + number})
		return
	}
	change := number(w.After["cents"]) - number(w.Before["cents"])
	c.cents += change
	if id == shop {
		c.price += change
	}
}

// runOf returns the run of the process with the given number, or nil if there is none.
func (b *journal) runOf(process string) *run {
	n, err := strconv.ParseUint(process, 10, 64)
	if err != nil {
		return nil
	}
	return b.runBy[n]
}

// committed records the outcome of the transaction that was served: it was applied, its token was
// known already, or it was refused.
func (b *journal) committed(r *request, status int, out []byte) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	c := b.commit
	b.commit = nil
	switch {
	case status == 200 && c.writes == 0:
		b.paths[KnownToken]++
	case status == 200:
		c.token.applied = time.Now()
		b.transactions++
		b.paths[c.path()]++
		if c.life != nil && r.actor.failedOpen {
			b.paths[CommittedOpen]++
		}
		b.judge.committed(c)
	case strings.Contains(string(out), memdynamo.TransactionInProgress):
		b.paths[StillRunning]++
	}
	b.cancelledLocked(r, out)
}

// path returns how an applied transaction got the record.
func (c *commit) path() Path {
	tx := c.request.tx
	switch {
	case tx.record == noRecord:
		return CommittedAlone
	case tx.actions == 1:
		return RecordAlone
	case len(c.paid) > 0 && c.paid[0].meant != Created:
		return CommittedFailed
	case tx.record == completes:
		return UnderLease
	case tx.over && c.before == inProgress:
		return ClaimedDead
	case tx.over:
		return ClaimedOver
	default:
		return ClaimedFree
	}
}

// cancelled records a cancellation that is a fault, and not the database's decision.
func (b *journal) cancelled(r *request, out []byte) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.cancelledLocked(r, out)
}

func (b *journal) cancelledLocked(r *request, out []byte) {
	codes := cancellation(out)
	if codes == nil {
		return
	}
	first, rest := codes[0], codes[1:]
	if r.tx.record == noRecord {
		first, rest = memdynamo.ReasonNone, codes
	}
	byRecord, byWrite := first == memdynamo.ReasonConditionalCheckFailed, slices.Contains(rest, memdynamo.ReasonConditionalCheckFailed)
	switch {
	case byRecord && byWrite:
		b.paths[ByBoth]++
	case byRecord:
		b.paths[ByRecord]++
	case byWrite:
		b.paths[ByCondition]++
	case first == memdynamo.ReasonTransactionConflict:
		b.paths[ByConflict]++
	case slices.Contains(rest, memdynamo.ReasonTransactionConflict):
		b.paths[ByWriteConflict]++
	case slices.Contains(codes, memdynamo.ReasonThrottling):
		b.paths[ByThrottling]++
	}
	if byRecord && b.completedBy(r.actor) {
		b.paths[ByOwnRecord]++
	}
}

// completedBy reports whether an actor has completed its record.
func (b *journal) completedBy(a *actor) bool {
	return slices.ContainsFunc(b.historyOf(a.order).completed(), func(l *life) bool { return l.completedBy == a })
}

// heard records a reply that a process got. The checks judge the process by this reply, and not by
// the database's last reply, which may belong to a late copy of the request.
func (a *actor) heard(r *request, got reply) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	e := entry{kind: kindReply, actor: a, request: r.label, status: got.status}
	if got.status != 200 {
		e.body = got.body
	}
	a.w.journal.addLocked(e)
	if r.tx != nil {
		a.cancelReasons = got.cancelled
	}
	switch {
	case r.op == "GetItem" && a.w.plan.lookUp && r.seq == 1 && a.run == nil:
		a.w.journal.paths[LookedUp]++
	case r.op == "GetItem":
		a.knowsRecord = a.knowsRecord || got.status == 200
	case r.tx != nil && r.tx.record != noRecord:
		a.knowsRecord = a.knowsRecord || got.status == 200 || cancellation(got.body) != nil
	}
}

// enlisted records that a run enlists its transfer.
func (b *journal) enlisted(r *run, whenFailed bool, verdict Ending) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	r.enlisted, r.whenFailed, r.verdict = true, whenFailed, verdict
}

// conditionFailed records that the handler's ElseFunc is called because a condition failed. It
// returns the error that the ElseFunc returns.
func (b *journal) conditionFailed(r *run) error {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.judge.conditionFailed(r)
	r.how = r.verdict
	b.noteLocked(r.actor, "handler's author is asked: %s", r.how)
	return r.how.traits().verdict(r)
}
