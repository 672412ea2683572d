package simulator

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// transaction is what the simulator knows about a TransactWriteItems request.
type transaction struct {
	token   string
	actions int
	record  recordAction
	over    bool // it claims a record that its sender has seen
}

// recordAction is what a transaction does with a record.
type recordAction int

// The record actions. The transaction of an unguarded run has none.
const (
	noRecord  recordAction = iota
	completes              // an update under the lease
	claims                 // a put of a new record, or an update of a record that was seen; completes it at once
)

// parseTransaction reads the body of a TransactWriteItems.
func parseTransaction(body []byte) *transaction {
	var in struct {
		ClientRequestToken string
		TransactItems      []map[string]struct {
			TableName                 string
			ExpressionAttributeValues map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic("simulator: a transaction can't be read: " + err.Error())
	}
	t := &transaction{token: in.ClientRequestToken, actions: len(in.TransactItems)}
	for kind, action := range in.TransactItems[0] {
		if action.TableName == table {
			_, t.over = action.ExpressionAttributeValues[":seen_token"]
			t.record = completes
			if kind == "Put" || t.over {
				t.record = claims
			}
		}
	}
	return t
}

// records returns the number of actions on a record, 0 or 1. They come before the handler's actions.
func (t *transaction) records() int {
	if t.record == noRecord {
		return 0
	}
	return 1
}

// someWrite returns the index of one of the handler's writes, which n selects. It returns 0, the
// record's action, if the handler has none.
func (t *transaction) someWrite(n int) int {
	if writes := t.actions - t.records(); writes > 0 {
		return t.records() + n%writes
	}
	return 0
}

// reasons returns the cancellation reasons of a transaction in which only the action with the given
// index failed.
func (t *transaction) reasons(code string, at int) []string {
	all := slices.Repeat([]string{memdynamo.ReasonNone}, t.actions)
	all[at] = code
	return all
}

// cancellation returns the reasons of a cancelled transaction, one code for each action. It returns
// nil if the reply says anything else.
func cancellation(out []byte) []string {
	if !strings.Contains(string(out), memdynamo.TransactionCanceled) {
		return nil
	}
	var in struct{ CancellationReasons []struct{ Code string } }
	if err := json.Unmarshal(out, &in); err != nil {
		panic("simulator: a cancellation can't be read: " + err.Error())
	}
	var codes []string
	for _, r := range in.CancellationReasons {
		codes = append(codes, r.Code)
	}
	return codes
}

// Path names something that a transaction or an attempt went through. A simulation counts how often
// each path is taken.
type Path string

// The paths.
const (
	UnderLease       Path = "committed under the lease"
	ClaimedFree      Path = "claimed a record that was free"
	ClaimedOver      Path = "claimed a record over what was seen"
	ClaimedDead      Path = "claimed a dead lease"
	CommittedOpen    Path = "committed after failing open"
	CommittedAlone   Path = "committed unguarded"
	CommittedFailed  Path = "committed beside a failed answer"
	RecordAlone      Path = "optimistic, without writes"
	KnownToken       Path = "token known, nothing written"
	TokenForgotten   Path = "arrived when its token was forgotten"
	StillRunning     Path = "refused while it was in progress"
	ByRecord         Path = "cancelled: the record"
	ByOwnRecord      Path = "cancelled: the record, which it had completed"
	ByCondition      Path = "cancelled: the condition"
	ByBoth           Path = "cancelled: the record and the condition"
	ByConflict       Path = "cancelled: conflict on the record"
	ByWriteConflict  Path = "cancelled: conflict on a write"
	ByThrottling     Path = "cancelled: throttled"
	LoserReplayed    Path = "optimistic, lost the race and replayed"
	LoserBusy        Path = "optimistic, found another one under way"
	HeldInstead      Path = "dead under rerun, held by a retry under hold"
	HeldRespected    Path = "optimistic, found the record held"
	ConsultedFirst   Path = "optimistic, consulted the record before another end"
	AloneRefused     Path = "unguarded, refused"
	AloneUnknown     Path = "unguarded, unknown"
	OpenDropped      Path = "failed open, found the record taken"
	OpenUnknown      Path = "failed open, unknown"
	StepRuns         Path = "step run"
	StepRead         Path = "step read, which another attempt had stored"
	AnswerApart      Path = "answer in parts"
	AnswerCompressed Path = "answer compressed"
	AnswerGone       Path = "answer of which a part was lost"
	PartWritten      Path = "part written"
	PartLost         Path = "part lost"
	SignatureExpired Path = "arrived with an expired signature"
	StepsRespected   Path = "optimistic, found a record with steps"
	LeaseIndexed     Path = "in progress with a shard"
	LeaseUnindexed   Path = "shard removed"
	ClaimWithdrawn   Path = "withdrawn by a later invocation"
	PanicUnknown     Path = "unknown, and the author panicked about its condition"
	InnerRefused     Path = "inner call refused"
	InnerUnknown     Path = "inner call unknown"
	InnerReplayed    Path = "inner call replayed"
	LookedUp         Path = "looked up"
)

// allPaths are the paths that a simulation must take. Otherwise it proves nothing about them.
var allPaths = []Path{
	UnderLease, ClaimedFree, ClaimedOver, ClaimedDead, CommittedOpen, CommittedAlone, CommittedFailed, RecordAlone,
	KnownToken, TokenForgotten, StillRunning, ByRecord, ByOwnRecord, ByCondition, ByBoth, ByConflict, ByWriteConflict, ByThrottling,
	LoserReplayed, LoserBusy, HeldRespected, ConsultedFirst, AloneRefused, AloneUnknown, OpenDropped, OpenUnknown, StepRuns, StepRead, StepsRespected,
	LeaseIndexed, LeaseUnindexed, SignatureExpired, ClaimWithdrawn, PanicUnknown, InnerRefused, InnerUnknown, InnerReplayed, LookedUp,
	AnswerApart, AnswerCompressed, AnswerGone, PartWritten, PartLost,
	OperatorReleased, OperatorSettled, OperatorErased, OperatorForgot, OperatorForgotSteps, OperatorTold, OperatorWaited, OperatorUnknown, LateForOperator,
	met(RequestLost), met(RequestLate), met(ReplyLost), met(Twice), met(Throttled), met(FailBefore), met(FailAfter),
	met(KillBefore), met(KillAfter), met(Stall), met(Unfinished),
}

// met returns the path of a transaction that met a fault.
func met(f Fault) Path { return Path("met: " + string(f)) }

// path counts that a path was taken.
func (b *journal) path(p Path) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.paths[p]++
}

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

// commits reports whether the run's enlisted writes must be committed if their condition holds.
func (r *run) commits() bool {
	return r.enlisted && r.leaves(r.meant) == completed && (r.meant == Created || r.whenFailed)
}

// panicked reports whether the handler or its ElseFunc panicked.
func (r *run) panicked() bool { return r.how == Panicked || r.how == RefusedPanicked }

// refused reports whether the run's condition failed.
func (r *run) refused() bool { return r.how != r.meant }
