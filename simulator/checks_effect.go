package simulator

import (
	"net/http"
	"regexp"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// arrives checks a transaction that reaches the database: the same token must come with the same
// bytes.
func (j *judge) arrives(r *request, s *tokenUse, body string) {
	if s.body != body {
		j.brokenLocked(r.actor, CheckSameBytes, "its token came before with other bytes")
	}
}

// committed checks a transaction that was applied.
func (j *judge) committed(c *commit) {
	a := c.request.actor
	if c.cents != 0 || c.price != price*int64(len(c.paid)) || c.unknown > 0 {
		j.brokenLocked(a, CheckBalance, "%d cents came in from nowhere, %d into the shop's account, for %d payments and %d of nobody", c.cents, c.price, len(c.paid), c.unknown)
	}
	for _, r := range c.paid {
		r.paid++
		if r.actor != a {
			j.brokenLocked(a, CheckTogether, "it committed what process %d enlisted", r.actor.id)
		}
		if !r.commits() {
			j.brokenLocked(a, CheckRefused, "it ended by %q, and what it enlisted was committed", r.meant)
		}
		guarded := a.order.Unguarded == ""
		if guarded != (c.record != nil) || guarded && c.record.id != r.record {
			j.brokenLocked(a, CheckTogether, "its payment was committed without the completion of its record")
		}
	}
	if l := c.life; l != nil {
		if l.paid += len(c.paid); l.paid > 1 {
			j.brokenLocked(a, CheckOneEffect, "its record has %d payments", l.paid)
		}
	}
}

// completion checks a completion: the attempt's enlisted writes must be in the same transaction.
func (j *judge) completion(r *request) {
	a := r.actor
	if a.run != nil && a.run.commits() && !a.run.refused() && (r.tx == nil || r.tx.actions == 1) {
		j.brokenLocked(a, CheckTogether, "its record was completed without what it enlisted")
	}
}

// conditionFailed checks a run whose ElseFunc is called: a condition of the handler's must have
// failed, and not the record's.
func (j *judge) conditionFailed(r *run) {
	a := r.actor
	if a.cancelReasons == nil {
		j.brokenLocked(a, CheckRecordFirst, "the author is asked, and no transaction was cancelled")
		return
	}
	records := 0
	if a.order.Unguarded == "" {
		records = 1
	}
	if a.cancelReasons[0] != memdynamo.ReasonNone && records > 0 || a.cancelReasons[records] != memdynamo.ReasonConditionalCheckFailed {
		j.brokenLocked(a, CheckRecordFirst, "the author is asked, and the reasons are %q", a.cancelReasons)
	}
}

// consulted checks that an optimistic attempt knows the state of its record before it answers.
func (j *judge) consulted(a *actor, got result) {
	if !a.optimistic || a.run == nil || a.dead || a.knowsRecord {
		return
	}
	switch got.Code {
	case string(lambdaidem.ErrStoreUnavailable), string(lambdaidem.ErrOutcomeUnknown), string(lambdaidem.ErrOutOfTime):
		return // the answer only says that the outcome is unknown
	}
	if a.run.panicked() && a.readRecord { // a panic only says that the attempt failed
		return
	}
	j.brokenLocked(a, CheckConsulted, "it answered %d %s%s, and knew nothing of its record", got.Status, got.Code, got.failed)
}

// byProcess finds the process in the text of an answer: see run.answer.
var byProcess = regexp.MustCompile(`of process (\d+)`)

// checkEffects compares the answers and the accounts with the enlisted writes.
func (j *judge) checkEffects() {
	if !j.b.w.plan.effects.enlist {
		return
	}
	if sum, least := j.b.w.balances(); sum != j.b.funds || least < 0 {
		j.broken(nil, CheckBalance, "all accounts hold %d, they should hold %d; one of them holds %d", sum, j.b.funds, least)
	}
	for _, ans := range j.b.answers {
		a, got := ans.actor, ans.got
		if said := byProcess.FindStringSubmatch(got.Body); got.carriesAnswer() && said != nil {
			j.checkSaid(a, got, j.b.runOf(said[1]))
		}
		if a.order.Unguarded != "" && a.run != nil {
			j.checkUnguarded(a, got)
		}
		j.countAnswer(a, got)
	}
	for _, r := range j.b.runs {
		if r.paid > 1 && (r.record != "" || !r.actor.stale) {
			j.broken(r.actor, CheckOneEffect, "it paid %d times", r.paid)
		}
	}
}

// checkSaid compares an answer with the run that it names. r is nil if there is no such run.
func (j *judge) checkSaid(a *actor, got result, r *run) {
	switch {
	case r == nil:
		j.broken(a, CheckCreated, "it was answered %q, of a run that never was", got.Body)
	case got.isOwn(r) && r.commits():
		if r.paid == 0 {
			j.broken(a, CheckCreated, "it was answered %d %q, and nothing was paid", got.Status, got.Body)
		}
	case r.paid > 0 && !r.actor.unsettled():
		j.broken(a, CheckRefused, "it was answered %d %q, and %d were paid", got.Status, got.Body, r.paid)
	}
}

// isOwn reports whether the result is what the run's handler returned, and not what its ElseFunc
// returned. It knows only the endings whose answers name their run.
func (r result) isOwn(of *run) bool {
	switch of.meant {
	case Created:
		return r.Status == http.StatusCreated
	case Declined:
		return r.Status == http.StatusPaymentRequired && r.Code == ""
	case Rejected:
		return r.Status == http.StatusConflict && r.Code == insufficient
	default:
		return false
	}
}

// unsettled reports whether a copy of one of the process's transactions may have arrived after the
// process learned the outcome. The process can't know about that.
func (a *actor) unsettled() bool { return a.met[Twice] }

// checkUnguarded compares the answer to an unguarded request with the number of its payments.
func (j *judge) checkUnguarded(a *actor, got result) {
	r := a.run
	least, most := 0, 1
	switch {
	case !r.commits():
		most = 0
	case got.carriesAnswer() && !r.refused():
		least = 1
	case got.failed != "", got.Code == string(lambdaidem.ErrOutcomeUnknown):
	case !a.unsettled():
		most = 0
	}
	if r.paid < least || r.paid > most && !a.stale {
		j.broken(a, CheckUnguarded, "it was answered %d %s%s, ended by %q, and paid %d times", got.Status, got.Code, got.failed, r.how, r.paid)
	}
}

// countAnswer counts the paths that an answer shows.
func (j *judge) countAnswer(a *actor, got result) {
	r := a.run
	if r == nil {
		return
	}
	refusal := lambdaidem.Code(got.Code)
	l := j.b.lastLife(a)
	of := map[Path]bool{
		LoserReplayed:  a.optimistic && got.Replayed,
		LoserBusy:      a.optimistic && refusal == lambdaidem.ErrInProgress,
		HeldRespected:  a.optimistic && refusal == lambdaidem.ErrAttemptAbandoned,
		StepsRespected: a.optimistic && refusal == lambdaidem.ErrAttemptAbandoned && l != nil && len(l.steps) > 0,
		ConsultedFirst: a.optimistic && r.meant.traits().leaves != completed && a.knowsRecord,
		AloneRefused:   a.order.Unguarded != "" && (r.refused() || refusal == lambdaidem.ErrStoreUnavailable),
		AloneUnknown:   a.order.Unguarded != "" && refusal == lambdaidem.ErrOutcomeUnknown,
		OpenDropped:    a.failedOpen && r.commits() && (got.Replayed || refusal == lambdaidem.ErrInProgress),
		OpenUnknown:    a.failedOpen && r.commits() && refusal == lambdaidem.ErrOutcomeUnknown,
	}
	for p, yes := range of {
		if yes {
			j.b.path(p)
		}
	}
}
