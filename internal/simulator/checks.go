package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/simulator/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Checks are the invariants, by name, with the rules that they hold a run
// against.
var Checks = map[string]string{
	"completed never changes": "G3: a completed record never changes before it expires",
	"lease before lock":       "L2, L6: nothing is written over a lease that is live by the clock of the world",
	"fenced":                  "L3: only the attempt whose token stands there completes or releases",
	"attempt raised":          "L6: every takeover raises the attempt number",
	"lease outlives":          "L5: a lease ends no earlier than its attempt's deadline, and MaxSkew",
	"expiry":                  "L7: what is in progress expires no earlier than its lease ends, and MaxSkew, and 1 s",
	"own record":              "F1, F2: nobody writes to another's record",
	"lock first":              "L2: a record begins with a lock",
	"replay":                  "R1, G3: every replay equals the answer that the record stored",
	"own answer":              "G3: nobody's answer comes from another's record, or from another payload",
	"first answer":            "X6: an attempt's own answer is sent only if it is the record's",
	"stored endings":          "X1, X2: only answers that the outcome rule stores are stored",
	"panic goes on":           "X2: a panic of the handler reaches the caller",
	"one at a time":           "G3: at most one attempt runs at a time",
	"one run":                 "X2: the guard runs the handler once in an invocation",
	"recognised":              "L4: an attempt knows its own lease and its own completion, though the reply was lost",
	"expired":                 "L7: nothing replays that has expired",
	"held":                    "G2, X2: under policy hold nothing runs twice after an uncertain end",
	"unstuck":                 "L6: under policy rerun no record is stuck beyond its lease",
	"in time":                 "L5, L8, X4, X5: every answer leaves before the invocation's deadline",
	"effect kept":             "X4: an attempt that met no fault records the effect that it had",
	"clean-up":                "X2, X3: a process that lives releases what it must, however its request ended",
	"conflict is busy":        "X9: a transaction conflict never fails open",
	"unknown released":        "X5: an acquire that may have landed is released before the answer goes out",
	"linearizable":            "G3: the clients' view fits one order of runs and replays",
	"harness":                 "the simulator itself",
}

// checkWrite holds one write against the record's life. It is called under mu.
func (b *book) checkWrite(a *actor, w wire.Write, l *life) {
	now := time.Now()
	status, token := w.After["status"].Text, w.After["token"].Text
	before := w.Before["status"].Text
	p := &b.w.plan
	if l.completed != nil && w.Op != "PutItem" && w.After.String() != l.completed.String() {
		b.brokenLocked(a, "completed never changes", "%s became %s", l.completed, w.After)
	}
	if before == "COMPLETED" && w.Op == "PutItem" && !expired(w.Before, now.Add(p.skew)) {
		b.brokenLocked(a, "completed never changes", "a lock was written over %s", w.Before)
	}
	switch status {
	case "INPROGRESS":
		if before == "INPROGRESS" && token != w.Before["token"].Text {
			end := millis(w.Before["in_progress_expiration"])
			// By its own clock the taker may be as much ahead as clocks differ.
			if p.skew <= p.maxSkew && now.Add(p.skew).Before(end) {
				b.brokenLocked(a, "lease before lock", "the lease of %s had %v left", w.Before["token"].Text, end.Sub(now))
			}
		}
		if w.Op == "UpdateItem" && number(w.After["attempt"]) != number(w.Before["attempt"])+1 {
			b.brokenLocked(a, "attempt raised", "attempt %d after %d", number(w.After["attempt"]), number(w.Before["attempt"]))
		}
		end := millis(w.After["in_progress_expiration"])
		if due := a.ends.Add(a.skew + p.maxSkew); end.Before(due) {
			b.brokenLocked(a, "lease outlives", "the lease ends %v before the deadline and MaxSkew", due.Sub(end))
		}
		if e, ok := w.After["expiration"]; ok && time.Unix(number(e), 0).Before(end.Add(p.maxSkew+time.Second)) {
			b.brokenLocked(a, "expiry", "it expires at %d, its lease ends at %d ms", number(e), end.UnixMilli())
		} else if ok == p.policyHold {
			b.brokenLocked(a, "expiry", "under policy hold: %v; has an expiration: %v", p.policyHold, ok)
		}
	case "COMPLETED", "RELEASED":
		if before != "INPROGRESS" || l.tokens[token] != a || w.Before["token"].Text != token {
			b.brokenLocked(a, "fenced", "%s was written over %s of token %s", status, before, w.Before["token"].Text)
		}
		if a.run != nil && state(status) != a.run.how.traits().leaves {
			b.brokenLocked(a, "stored endings", "an attempt that ended by %q was %s", a.run.how, map[string]string{"COMPLETED": "stored", "RELEASED": "released"}[status])
		}
	}
}

// conclude holds the whole book against the rules, once all is quiet.
func (b *book) conclude() {
	for _, ans := range b.answers {
		b.checkAnswer(ans)
	}
	for _, h := range b.sorted() {
		b.checkRuns(h)
	}
	b.checkLinearizable()
}

func (b *book) sorted() []*history {
	var all []*history
	for _, h := range b.records {
		all = append(all, h)
	}
	slices.SortFunc(all, func(x, y *history) int { return strings.Compare(x.id, y.id) })
	return all
}

// historyOf is the record of an order; nil if it never had one.
func (b *book) historyOf(o order) *history {
	for _, h := range b.records {
		if h.order.Key == o.Key && h.order.Owner == o.Owner {
			return h
		}
	}
	return nil
}

// checkAnswer holds one answer against the record.
func (b *book) checkAnswer(ans *answer) {
	a, got := ans.actor, ans.got
	h := b.historyOf(a.order)
	if got.carriesAnswer() && got.Code != string(lambdaidem.ErrPermanent) {
		want := fmt.Sprintf("%s/%s/%s by", a.order.Owner, a.order.Key, a.order.Payload)
		if !strings.Contains(got.Body, want) {
			b.broken(a, "own answer", "asked for %q, got %q", want, got.Body)
		}
	}
	if got.Replayed && !got.carriesAnswer() {
		b.broken(a, "replay", "a replay of status %d", got.Status)
	}
	if got.failed == "" && a.run != nil && a.run.how == Panicked {
		b.broken(a, "panic goes on", "the handler panicked and the caller got %d", got.Status)
	}
	if !got.carriesAnswer() || b.open(a) {
		return
	}
	if got.Replayed {
		if h != nil && slices.ContainsFunc(h.lives, func(l *life) bool { return l.completedBy == a && (l.gone.IsZero() || l.gone.After(ans.to)) }) {
			b.broken(a, "recognised", "its own completion was replayed to it")
		}
		if h == nil || !slices.ContainsFunc(h.lives, func(l *life) bool {
			return l.completed != nil && !l.completedAt.After(ans.to) && (l.gone.IsZero() || !l.gone.Before(ans.from)) && b.answerOf(l) == got.text()
		}) {
			b.broken(a, "replay", "no record stored %q while the request was under way", got.Body)
		}
		if !slices.ContainsFunc(h.livesOf(), func(l *life) bool {
			return b.answerOf(l) == got.text() && !expired(l.completed, ans.from.Add(-b.w.plan.skew))
		}) {
			b.broken(a, "expired", "%q was replayed, which had expired", got.Body)
		}
		return
	}
	if h == nil || !slices.ContainsFunc(h.lives, func(l *life) bool { return l.completedBy == a && b.answerOf(l) == got.text() }) {
		b.broken(a, "first answer", "sent %q, which its record did not store from it", got.Body)
	}
}

// livesOf is the completed ones of a record's lives; none of a record that
// never was.
func (h *history) livesOf() []*life {
	if h == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.lives), func(l *life) bool { return l.completed == nil })
}

// open tells whether an attempt failed open: it ran without the lease.
func (b *book) open(a *actor) bool { return a.run != nil && a.run.attempt == 0 }

// text is what of a result must be equal between a first answer and a replay.
func (r result) text() string { return fmt.Sprintf("%d %s", r.Status, r.Body) }

// answerOf is the text of the answer that a life stored.
func (b *book) answerOf(l *life) string {
	var s struct {
		StatusCode int    `json:"statusCode"`
		Body       string `json:"body"`
	}
	if err := unmarshal(l.completed["data"].Text, &s); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", s.StatusCode, s.Body)
}

// checkRuns holds the handler's runs for one key against each other.
func (b *book) checkRuns(h *history) {
	p := &b.w.plan
	var runs []*run
	for _, r := range b.runs {
		if o := r.actor.order; o.Key == h.order.Key && o.Owner == h.order.Owner && !b.open(r.actor) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(x, y *run) int { return x.began.Compare(y.began) })
	for i, r := range runs {
		how, end := r.how.traits(), r.ended
		if end.IsZero() {
			end = r.due
		}
		for _, next := range runs[i+1:] {
			if b.obeyed() && next.began.Before(end) {
				b.broken(next.actor, "one at a time", "it began %v before the run of process %d ended", end.Sub(next.began), r.actor.id)
			}
			if p.policyHold && how.unsure {
				b.broken(next.actor, "held", "it ran after process %d, whose run ended by %q", r.actor.id, r.how)
			}
		}
		stored := slices.ContainsFunc(h.lives, func(l *life) bool { return l.completedBy == r.actor })
		if how.leaves == completed && r.effects > 0 && !stored && len(r.actor.met) == 0 && !r.actor.dead && b.obeyed() {
			b.broken(r.actor, "effect kept", "its run ended by %q and nothing was completed", r.how)
		}
		gaveBack := slices.ContainsFunc(h.lives, func(l *life) bool { return l.released[r.actor] })
		if how.leaves == released && !p.policyHold && len(r.actor.met) == 0 && !r.actor.dead && !gaveBack && b.obeyed() {
			b.broken(r.actor, "clean-up", "its run ended by %q and nothing was released", r.how)
		}
	}
}

// obeyed tells whether the run kept to what G3's last sentence asks for: clocks
// within MaxSkew, and no attempt that went on past its context.
func (b *book) obeyed() bool {
	p := &b.w.plan
	return p.skew <= p.maxSkew && p.disobedient == 0 && b.faults[Stall] == 0
}

func expired(item wire.Item, now time.Time) bool {
	e, ok := item["expiration"]
	return ok && number(e) <= now.Unix()
}

func millis(v wire.Value) time.Time { return time.UnixMilli(number(v)) }

func number(v wire.Value) int64 {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
