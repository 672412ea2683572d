package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// answered looks at what a client gets, at the moment when it leaves.
func (j *judge) answered(a *actor, got result) {
	j.consulted(a, got)
	if (got.Code == string(lambdaidem.ErrStoreUnavailable) || got.Code == string(lambdaidem.ErrInProgress)) && a.run == nil && a.releasesSent == 0 {
		for _, h := range j.b.records {
			if h.holder != a || a.met[RequestLate] || a.met[Twice] { // what lands that late, nobody can know of
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

// overran looks at a process that Lambda kills at its deadline.
func (j *judge) overran(a *actor) {
	if j.b.w.plan.disobedient == 0 && a.order.Unguarded == "" { // nothing ends an unguarded handler's context in time
		j.broken(a, CheckInTime, "it was still running at its deadline")
	}
}

// panicked looks at what came out of an invocation by panic.
func (j *judge) panicked(a *actor, v any) {
	if _, own := v.(scripted); !own {
		j.broken(a, CheckHarness, "the guard panicked by itself: %v", v)
	}
}

// event looks at what the guard tells of an attempt.
func (j *judge) event(a *actor, e lambdaidem.Event) {
	if e.Kind == lambdaidem.EventFailedOpen && len(a.met) == 1 && a.met[Conflict] {
		j.brokenLocked(a, CheckConflictIsBusy, "it failed open, and had met nothing but conflicts")
	}
}

// probed looks at the last of the answers that a key gave after all faults had
// ended: one of its payloads has an answer now, or the key is held (L6).
func (j *judge) probed(h *history, a *actor, last result) {
	if !last.carriesAnswer() && !j.held(h, a, last) {
		j.brokenRecord(h, CheckUnstuck, "%+v is stuck: %+v", h.order, last)
	}
}

// held tells whether a key waits for an operator, as it may: because of the
// policy of the attempt that died, or of the one that asks.
func (j *judge) held(h *history, a *actor, got result) bool {
	if got.Code == string(lambdaidem.ErrAnswerUnavailable) && len(h.lives) > 0 && h.lives[len(h.lives)-1].lost {
		return true // R3: it never comes back, and nothing runs again
	}
	if got.Code == string(lambdaidem.ErrAttemptAbandoned) && a.optimistic && h != nil && len(h.lives) > 0 && len(h.lives[len(h.lives)-1].steps) > 0 {
		return true // E4: it has none
	}
	return got.Code == string(lambdaidem.ErrAttemptAbandoned) &&
		(a.underHold() || h.holder != nil && h.holder.underHold() || len(h.lives) > 0 && h.lives[len(h.lives)-1].held)
}

// checkAnswer holds one answer against the record.
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
	if got.Code == string(lambdaidem.ErrPayloadMismatch) && !a.met[Stall] && !h.hadOtherPayload(ans) { // who stood still may be two versions behind
		j.broken(a, CheckMismatch, "it was told of another payload, and everybody asked with its own")
	}
	if got.Replayed && !got.carriesAnswer() {
		j.broken(a, CheckReplay, "a replay of status %d", got.Status)
	}
	knew := got.Replayed || strings.HasPrefix(got.Code, "idempotency_") // E4: the record knows better
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
