//go:build !race

package simulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDiagram_MarksBrokenRules(t *testing.T) {
	i := slices.IndexFunc(mutations, func(m mistake) bool { return m.Name == "no fencing on completion" })
	r := runSeed(t, searchFrom[mutations[i].Name], &mutations[i].Mutation, false)
	d := r.Diagram()
	var wrong []string
	for _, e := range d.Events {
		if e.Wrong {
			if at := fmt.Sprintf("at %.3f s", e.At.Seconds()); len(wrong) == 0 && !strings.Contains(d.Summary, at) {
				t.Errorf("the summary is %q, and the first broken rule is marked %s", d.Summary, at)
			}
			wrong = append(wrong, e.Detail)
		}
	}
	if len(wrong) != len(r.Wrong) || !slices.Contains(wrong, Checks[CheckFenced]) || !strings.Contains(d.Summary, Checks[CheckFenced]) {
		t.Errorf("the diagram marks %q, and its summary is %q; want the rule %q in both", wrong, d.Summary, Checks[CheckFenced])
	}
}
