package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// answered checks what an invocation returns, at the moment when it does.
func (j *judge) answered(a *actor, got result) {
	j.consulted(a, got)
	if (got.Code == string(lambdaidem.ErrStoreUnavailable) || got.Code == string(lambdaidem.ErrInProgress)) && a.run == nil && a.releasesSent == 0 {
		for _, h := range j.b.records {
			if h.holder != a || a.met[RequestLate] || a.met[Twice] { // the actor can't know what arrives that late
				continue
			}
			check := CheckUnknownReleased
			if got.Status == 409 {
				check = CheckRecognised
			}
			j.brokenLocked(a, check, "its acquire had landed, it answered %d, and sent no release", got.Status)
		}
	}
	if got.Code == string(lambdaidem.ErrAttemptAbandoned) && a.underHold() && len(a.met) == 0 {
		j.holdKept(a)
	}
	if got.Status != 0 && time.Now().After(a.ends) && !a.met[Stall] && j.b.w.plan.disobedient == 0 && a.order.Unguarded == "" {
		j.brokenLocked(a, CheckInTime, "the answer came %v after the invocation's deadline", time.Since(a.ends))
	}
}

// overran checks a process that Lambda kills at its deadline.
func (j *judge) overran(a *actor) {
	if j.b.w.plan.disobedient == 0 && a.order.Unguarded == "" { // no guard ends the context of an unguarded handler early
		j.broken(a, CheckInTime, "it was still running at its deadline")
	}
}

// panicked checks the value of a panic that left an invocation.
func (j *judge) panicked(a *actor, v any) {
	if _, own := v.(scripted); !own {
		j.broken(a, CheckHarness, "the guard panicked by itself: %v", v)
	}
}

// event checks an event that the guard reports.
func (j *judge) event(a *actor, e lambdaidem.Event) {
	if e.Kind == lambdaidem.EventFailedOpen && len(a.met) == 1 && a.met[Conflict] {
		j.brokenLocked(a, CheckConflictIsBusy, "it failed open, and had met nothing but conflicts")
	}
}

// probed checks the last answer to the probe of a record, when all faults have ended: one of the
// payloads has got an answer, or the record is held.
func (j *judge) probed(h *history, a *actor, last result) {
	if !last.carriesAnswer() && !j.held(h, a, last) {
		j.brokenRecord(h, CheckUnstuck, "%+v is stuck: %+v", h.order, last)
	}
}

// held reports whether a result without an answer is right, because the record waits for an
// operator: under the policy of the attempt that died or of actor a, or because the answer was lost,
// or because an optimistic attempt found a record with steps.
func (j *judge) held(h *history, a *actor, got result) bool {
	if got.Code == string(lambdaidem.ErrAnswerUnavailable) && len(h.lives) > 0 && h.lives[len(h.lives)-1].lost {
		return true // a lost answer never comes back, and the handler must not run again
	}
	if got.Code == string(lambdaidem.ErrAttemptAbandoned) && a.optimistic && h != nil && len(h.lives) > 0 && len(h.lives[len(h.lives)-1].steps) > 0 {
		return true // an optimistic attempt can't continue a record with steps
	}
	return got.Code == string(lambdaidem.ErrAttemptAbandoned) &&
		(a.underHold() || h.holder != nil && h.holder.underHold() || len(h.lives) > 0 && h.lives[len(h.lives)-1].held)
}

// checkAnswer compares one answer with the record.
func (j *judge) checkAnswer(ans *answer) {
	a, got := ans.actor, ans.got
	b := j.b
	h := b.historyOf(a.order)
	if got.carriesAnswer() && got.Code != string(lambdaidem.ErrPermanent) {
		want := fmt.Sprintf("%s/%s/%s by", a.order.Owner, a.order.Key, a.order.Payload)
		if !strings.Contains(got.Body, want) {
			j.broken(a, CheckOwnAnswer, "asked for %q, got %q", want, got.Body)
		}
	}
	if got.Code == string(lambdaidem.ErrAnswerUnavailable) {
		if h == nil || !slices.ContainsFunc(h.lives, func(l *life) bool { return l.lost }) {
			j.broken(a, CheckWhole, "its answer is unavailable, and nothing of it was lost")
		} else {
			b.path(AnswerGone)
		}
	}
	if got.Code == string(lambdaidem.ErrPayloadMismatch) && !a.met[Stall] && !h.hadOtherPayload(ans) { // a process that stood still may be two versions behind
		j.broken(a, CheckMismatch, "it was told of another payload, and everybody asked with its own")
	}
	if got.Replayed && !got.carriesAnswer() {
		j.broken(a, CheckReplay, "a replay of status %d", got.Status)
	}
	// An answer that comes from the record may replace a panic of an optimistic attempt.
	knew := got.Replayed || strings.HasPrefix(got.Code, "idempotency_")
	if got.failed == "" && a.run != nil && a.run.panicked() && (!a.optimistic || !knew) {
		j.broken(a, CheckPanicGoesOn, "the handler panicked and the caller got %d", got.Status)
	}
	if !got.carriesAnswer() || a.needsNoRecord() || a.order.Unguarded != "" {
		return
	}
	if got.Replayed {
		if h != nil && (a.run == nil || !a.run.refused()) && slices.ContainsFunc(h.lives, func(l *life) bool {
			return l.completedBy == a && !l.completedAt.After(ans.to) && (l.ended.IsZero() || l.ended.After(ans.to))
		}) {
			j.broken(a, CheckRecognised, "its own completion was replayed to it")
		}
		if h == nil || !slices.ContainsFunc(h.lives, func(l *life) bool {
			return l.completed != nil && !l.completedAt.After(ans.to) && (l.ended.IsZero() || !l.ended.Before(ans.from)) && l.answer() == got.text()
		}) {
			j.broken(a, CheckReplay, "no record stored %q while the request was under way", got.Body)
		}
		if !slices.ContainsFunc(h.completed(), func(l *life) bool {
			return l.answer() == got.text() && !expired(l.completed, ans.from.Add(-b.w.plan.skew))
		}) {
			j.broken(a, CheckExpired, "%q was replayed, which had expired", got.Body)
		}
		return
	}
	if h == nil || !slices.ContainsFunc(h.lives, func(l *life) bool { return l.completedBy == a && l.answer() == got.text() }) {
		j.broken(a, CheckFirstAnswer, "sent %q, which its record did not store from it", got.Body)
	}
}

// hadOtherPayload reports whether an attempt with another payload than the asked request's
// held or completed the record while that request was in progress, or before that in the same
// life of the record.
func (h *history) hadOtherPayload(asked *answer) bool {
	if h == nil {
		return false
	}
	other := func(a *actor) bool {
		return a != nil && a.operation == nil && a.order.Payload != asked.actor.order.Payload
	}
	return slices.ContainsFunc(h.lives, func(l *life) bool {
		if l.began.After(asked.to) || !l.ended.IsZero() && l.ended.Before(asked.from) {
			return false
		}
		return other(l.completedBy) || slices.ContainsFunc(slices.Collect(maps.Values(l.tokens)), other)
	})
}
