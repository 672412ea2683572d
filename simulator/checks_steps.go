package simulator

import (
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// stepRuns checks that a step that runs was not stored before.
func (j *judge) stepRuns(r *run, name, key string) {
	a := r.actor
	if l := j.b.lifeOf(a); l != nil && !a.failedOpen {
		if s, ok := l.steps[name]; ok && (s.by == a || !s.at.After(r.began)) {
			j.brokenLocked(a, CheckStepOnce, "step %s runs, and was stored before by process %d", name, s.by.id)
		}
	}
	j.downstreamKey(r, name, key)
}

// stepResult checks that a step returned the result that its own record stores.
func (j *judge) stepResult(r *run, name, text string) {
	a := r.actor
	o := a.order
	if want := fmt.Sprintf("%s for %s/%s/%s by", name, o.Owner, o.Key, o.Payload); !strings.HasPrefix(text, want) {
		j.brokenLocked(a, CheckOwnStep, "step %s should be %q, and is %q", name, want, text)
	}
	if l := j.b.lifeOf(a); l != nil && !a.failedOpen {
		if s, ok := l.steps[name]; !ok || s.text != text {
			j.brokenLocked(a, CheckOwnStep, "step %s returned %q, and its record has %q", name, text, s.text)
		}
	}
}

// steps checks what a write does to the record's steps.
func (j *judge) steps(a *actor, w memdynamo.Write, as change, l *life) {
	after, before := w.After["steps"].Map, w.Before["steps"].Map
	token := w.After["token"].Text
	switch {
	case stateOf(w.After) == completed:
		if len(after) > 0 {
			j.brokenLocked(a, CheckStepsDropped, "the completed record has %d steps", len(after))
		}
		if as.claims && as.over && len(before) > 0 {
			j.brokenLocked(a, CheckStepsKept, "an optimistic attempt claimed a record with %d steps", len(before))
		}
		return
	case as.begins:
		return
	}
	for name := range before {
		if after[name].Text != before[name].Text {
			j.brokenLocked(a, CheckStepsKept, "step %s was %q, and is %q", name, before[name].Text, after[name].Text)
		}
	}
	if saves := stateOf(w.After) == inProgress && !as.over; saves && l.tokens[token] != a {
		j.brokenLocked(a, CheckFenced, "it stored a step under the token of another")
	}
}
