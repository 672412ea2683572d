//go:build !race

package simulator

import (
	"slices"
	"strings"
	"testing"
)

func TestDiagram_MarksBrokenRules(t *testing.T) {
	i := slices.IndexFunc(mutations, func(m mistake) bool { return m.Name == "no fencing on completion" })
	r := inBubble(t, searchFrom[mutations[i].Name], &mutations[i].Mutation, false)
	d := r.Diagram()
	var wrong []string
	for _, e := range d.Events {
		if e.Wrong {
			wrong = append(wrong, e.Detail)
		}
	}
	if len(wrong) != len(r.Wrong) || !slices.Contains(wrong, Checks[CheckFenced]) || !strings.Contains(d.Summary, Checks[CheckFenced]) {
		t.Errorf("the diagram marks %q, and its summary is %q; want the rule %q in both", wrong, d.Summary, Checks[CheckFenced])
	}
}
