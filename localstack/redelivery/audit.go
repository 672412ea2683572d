package redelivery

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Books are everything that is known after a run.
type Books struct {
	Ordered    bool       // the source promises an order within each group
	Sent       []Message  // in the order of their sending
	Deliveries []Delivery // whatever the source delivered
	Counts     map[string]Count
	Order      map[string][]string // by group, the messages in the order of their commits

	// Kills is how many processes the test itself killed while they were busy.
	Kills int
	// Lease is the most by which a lease outlives the answer of an invocation that
	// died: the function's Timeout and MaxSkew.
	Lease time.Duration
	// MinRunTime is how much time must be left for a message to begin.
	MinRunTime time.Duration
}

// Delivery is one invocation by the source.
type Delivery struct {
	Request  string // its id
	Batch    []string
	Reported []string // as answered: one message at a time, or the only one by an error
	Lost     bool     // the process died, so there was no answer
	TimedOut bool     // it was killed at the function's timeout; Lost too
	Odd      string   // what there was instead of an answer that such a source understands

	Began, Ended  time.Time     // by the source's clock
	Left          time.Duration // of the function's time when it answered
	Before, After map[string]Count
}

// Report is what an audit found.
type Report struct {
	Messages   int
	Effects    int
	Runs       int // of handlers: an effect takes one at least
	Deliveries int
	Lost       int // deliveries without an answer
	TimedOut   int // of those, by the function's timeout
	Messengers int // messages that were delivered, each time counted
	Reported   int // messages that were reported

	// Findings are the breaches of the contract, a sentence each. None: all is
	// right.
	Findings []string
}

// Audit holds what was committed against what was sent, and each answer against what
// happened in its invocation:
//
//   - a message has one effect, and one that never succeeds has none;
//   - the effects of an ordered source's group are in the order of sending;
//   - what an answer does not report is done by then;
//   - what it reports failed in that invocation, or was held back: by an earlier
//     failure of its group, by another attempt that was in progress, or by the
//     deadline. It is reported once;
//   - nothing of a group runs after the group's first failure in that invocation;
//   - a message runs once at most in an invocation, and never once it is done;
//   - an invocation has no answer only where its process was made to die, or ran into
//     its timeout.
func (b Books) Audit() Report {
	r := Report{Messages: len(b.Sent), Deliveries: len(b.Deliveries)}
	r.Findings = append(r.Findings, b.effectFindings()...)
	r.Findings = append(r.Findings, b.orderFindings()...)
	for _, c := range b.Counts {
		r.Effects += c.Effects
		r.Runs += len(c.Runs)
	}
	unexplained := 0
	for i, d := range b.Deliveries {
		r.Messengers += len(d.Batch)
		r.Reported += len(d.Reported)
		v := verdict{Books: &b, Delivery: &b.Deliveries[i]}
		if d.Lost {
			r.Lost++
			switch {
			case d.TimedOut:
				r.TimedOut++
			case !v.wasMadeToDie():
				unexplained++
			}
			v.runFindings()
		} else {
			v.answerFindings()
		}
		r.Findings = append(r.Findings, v.findings...)
	}
	if unexplained > b.Kills {
		r.Findings = append(r.Findings, fmt.Sprintf("%d invocations died that were not made to; the test killed %d", unexplained, b.Kills))
	}
	return r
}

// message finds one that was sent.
func (b Books) message(name string) (Message, bool) {
	i := slices.IndexFunc(b.Sent, func(m Message) bool { return m.Name == name })
	if i < 0 {
		return Message{}, false
	}
	return b.Sent[i], true
}

// effectFindings counts effects.
func (b Books) effectFindings() []string {
	var found []string
	for _, m := range b.Sent {
		want := 1
		if m.Poison() {
			want = 0
		}
		if c := b.Counts[m.Name]; c.Effects != want {
			found = append(found, fmt.Sprintf("%s had %d effects, by %d runs; want %d (G1)", m.Name, c.Effects, len(c.Runs), want))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Counts)) {
		if _, sent := b.message(name); !sent && b.Counts[name].Effects > 0 {
			found = append(found, fmt.Sprintf("%s had an effect, and was never sent", name))
		}
	}
	return found
}

// orderFindings compares the groups' logs of commits with what was sent, in order
// where there is one.
func (b Books) orderFindings() []string {
	var found []string
	want := map[string][]string{}
	for _, m := range b.Sent {
		if !m.Poison() {
			want[m.Group] = append(want[m.Group], m.Name)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(want)) {
		sent, got := want[group], slices.Clone(b.Order[group])
		if !b.Ordered {
			sent = slices.Sorted(slices.Values(sent))
			slices.Sort(got)
		}
		if !slices.Equal(got, sent) {
			found = append(found, fmt.Sprintf("group %s committed %v; want %v (V2)", group, b.Order[group], want[group]))
		}
	}
	return found
}

// verdict is about one delivery.
type verdict struct {
	*Books
	*Delivery

	findings []string
}

func (v *verdict) find(format string, args ...any) {
	v.findings = append(v.findings, fmt.Sprintf("delivery %s of %v: ", v.Request, v.Batch)+fmt.Sprintf(format, args...))
}

// runs are those of a message in this invocation, counted from 1.
func (v *verdict) runs(name string) []int {
	var runs []int
	for i, request := range v.Counts[name].Runs {
		if request == v.Request {
			runs = append(runs, i+1)
		}
	}
	return runs
}

// deed is what a message's handler did in this invocation, if it ran.
func (v *verdict) deed(name string) (Deed, bool) {
	runs := v.runs(name)
	if len(runs) == 0 {
		return "", false
	}
	m, _ := v.message(name)
	return m.Deed(runs[0]), true
}

func (v *verdict) wasMadeToDie() bool {
	return slices.ContainsFunc(v.Batch, func(name string) bool {
		deed, ran := v.deed(name)
		return ran && deed.kills()
	})
}

// answerFindings judges what was answered, and what ran.
func (v *verdict) answerFindings() {
	if v.Odd != "" {
		v.find("there was no answer but %s", v.Odd)
		return
	}
	seen := map[string]bool{}
	for _, name := range v.Reported {
		switch {
		case seen[name]:
			v.find("%s is reported twice", name)
		case !slices.Contains(v.Batch, name):
			v.find("%s is reported, and is none of the batch", name)
		}
		seen[name] = true
	}
	for _, name := range distinct(v.Batch) {
		if seen[name] {
			if why := v.unjust(name); why != "" {
				v.find("%s is reported, %s (V2)", name, why)
			}
		} else if v.After[name].Effects == 0 {
			v.find("%s is not reported, and is not done (V2)", name)
		}
	}
	v.runFindings()
}

// runFindings judges what ran in this invocation.
func (v *verdict) runFindings() {
	failed := map[string]string{} // by group, its first failure
	for _, name := range distinct(v.Batch) {
		m, sent := v.message(name)
		runs := v.runs(name)
		switch first := failed[m.Group]; {
		case !sent:
			v.find("%s was never sent", name)
		case len(runs) > 1:
			v.find("%s ran %d times in it", name, len(runs))
		case len(runs) > 0 && v.Before[name].Effects > 0:
			v.find("%s was done, and ran again (V2)", name)
		case len(runs) > 0 && v.Ordered && first != "":
			v.find("%s ran after %s had failed, which is before it in its group (V2)", name, first)
		}
		if slices.Contains(v.Reported, name) && failed[m.Group] == "" {
			failed[m.Group] = name
		}
	}
}

// unjust says why a message should not have been reported; empty: it should.
func (v *verdict) unjust(name string) string {
	if deed, ran := v.deed(name); ran {
		if deed.fails() || v.Left < v.MinRunTime { // its commit had no time
			return ""
		}
		return fmt.Sprintf("and its handler did %s", deed)
	}
	switch {
	case v.heldBack(name), v.Left < v.MinRunTime, v.Before[name].Effects == 0 && v.inProgress(name):
		return ""
	case v.Before[name].Effects > 0:
		return "and was done before"
	}
	return "and nothing was in its way"
}

// heldBack tells whether an earlier message of the group is reported.
func (v *verdict) heldBack(name string) bool {
	m, _ := v.message(name)
	for _, earlier := range v.Batch[:slices.Index(v.Batch, name)] {
		if e, _ := v.message(earlier); v.Ordered && e.Group == m.Group && slices.Contains(v.Reported, earlier) {
			return true
		}
	}
	return false
}

// inProgress tells whether another invocation had an attempt at the message that was
// under way with this one, or that died and whose lease may have held. One that died
// may have done so before its handler began.
func (v *verdict) inProgress(name string) bool {
	return slices.ContainsFunc(v.Deliveries, func(o Delivery) bool {
		over, had := o.Ended, slices.Contains(v.Counts[name].Runs, o.Request)
		if o.Lost {
			over, had = over.Add(v.Lease), slices.Contains(o.Batch, name)
		}
		return had && o.Request != v.Request && o.Began.Before(v.Ended) && over.After(v.Began)
	})
}

// distinct are the names of a batch, each where it stands first.
func distinct(batch []string) []string {
	var names []string
	for _, name := range batch {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// String is the report for a reader: the counts, then the findings.
func (r Report) String() string {
	s := fmt.Sprintf("%d messages, %d effects, %d runs; %d deliveries of %d messages, %d of them reported, %d deliveries without an answer, %d of them timed out",
		r.Messages, r.Effects, r.Runs, r.Deliveries, r.Messengers, r.Reported, r.Lost, r.TimedOut)
	for _, finding := range r.Findings {
		s += "\n  ! " + finding
	}
	return s
}
