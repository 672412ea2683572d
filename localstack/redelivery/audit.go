package redelivery

import (
	"fmt"
	"maps"
	"slices"
)

// Report is the result of an audit.
type Report struct {
	Messages   int
	Effects    int
	Runs       int // runs of handlers; each effect needs at least one
	Deliveries int
	Lost       int // deliveries without an answer
	TimedOut   int // lost deliveries that ran into the function's timeout
	Messengers int // messages in all deliveries; a message counts each time it is delivered
	Reported   int // messages in all reports of failures

	// Findings has a sentence for each breach of the contract. It is empty if there is none.
	Findings []string
}

// Audit compares the committed effects with the messages sent, and each answer with what happened
// in its invocation. It reports every breach of these rules:
//
//   - A message has exactly one effect. A message that never succeeds has none.
//   - If the source is ordered, the effects of a group are in the order of sending.
//   - A message that an answer does not report as failed is done by then.
//   - A message that an answer reports as failed did fail in that invocation, or could not run:
//     because an earlier message of its group failed, another attempt was in progress, or too
//     little time was left. It is reported once.
//   - If the source is ordered, no message of a group runs in an invocation after the first
//     failure of the group.
//   - A message runs at most once in an invocation, and never after it is done.
//   - An invocation has no answer only if its process was made to die or ran into its timeout.
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

// effectFindings checks the number of each message's effects.
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

// orderFindings checks that each group has committed exactly the messages that were sent to it
// and can succeed. If the source is ordered, it also checks their order.
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

// verdict checks one delivery.
type verdict struct {
	*Books
	*Delivery

	findings []string
}

func (v *verdict) find(format string, args ...any) {
	v.findings = append(v.findings, fmt.Sprintf("delivery %s of %v: ", v.Request, v.Batch)+fmt.Sprintf(format, args...))
}

// runs returns the numbers, counted from 1, of the message's runs in this invocation.
func (v *verdict) runs(name string) []int {
	var runs []int
	for i, request := range v.Counts[name].Runs {
		if request == v.Request {
			runs = append(runs, i+1)
		}
	}
	return runs
}

// deed returns what the message's handler did in this invocation, and false if it did not run.
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

// runFindings checks which messages ran in this invocation.
func (v *verdict) runFindings() {
	failed := map[string]string{} // first reported message of each group
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

// distinct returns the names in a batch without repetitions, in the order of their first
// positions.
func distinct(batch []string) []string {
	var names []string
	for _, name := range batch {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// String returns the counts in one line, followed by a line for each finding.
func (r Report) String() string {
	s := fmt.Sprintf("%d messages, %d effects, %d runs; %d deliveries of %d messages, %d of them reported, %d deliveries without an answer, %d of them timed out",
		r.Messages, r.Effects, r.Runs, r.Deliveries, r.Messengers, r.Reported, r.Lost, r.TimedOut)
	for _, finding := range r.Findings {
		s += "\n  ! " + finding
	}
	return s
}
