package window_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// note returns the form of a request to a route of the notes.
func note(path, key string) string {
	route := slices.Index([]string{"/open", "/cached", "/optimistic", "/shared", "/slow"}, path)
	return fmt.Sprintf(`{"route":%d,"path":%q,"key":%q,"body":"{}"}`, route, path, key)
}

// The rows, the caption and the sum agree with what happened, whatever options a guard has.
func TestNotes_CaptionsFitEveryGuard(t *testing.T) {
	w, err := startNotes()
	if err != nil {
		t.Fatal(err)
	}
	const works = rehearsal.Works
	for _, step := range []struct {
		state, path, key string
		lines            []string
		look, sum        string
	}{
		{"unreachable", "/open", "open-1", []string{`\(lost\)$`, `to client: 201 Created$`}, `FailOpen.*could not be stored, and the client got it all the same`, "ran once."},
		{works, "/open", "open-1", []string{`: runs the handler again, because no earlier run has stored the answer to this request$`}, `There was no record`, "ran twice."},
		{"lost-replies", "/open", "open-1", []string{`stores the answer`}, `FailOpen.*another attempt has the record, so DynamoDB refused this attempt's answer\.$`, "ran 3 times."},
		{"lost-replies", "/open", "open-2", []string{`locks the record .* \[in progress\]$`, `stores the answer .* \[completed\]$`}, `FailOpen.*Find the row in which the answer is stored\. `, "ran once."},
		{works, "/cached", "cached-1", []string{`stores the answer .* \[completed\]$`}, `There was no record.*Find the row in which the answer is stored\. `, "ran once."},
		{works, "/cached", "cached-1", []string{`to client: 201 Created: the first answer again, the handler did not run$`}, `in its memory.*the handler does not run again`, ""},
		{works, "/optimistic", "optimistic-1", []string{`stores the answer in a new record \(only if there is none that is valid\) \[completed\]$`}, `ran without a lock: the write of the answer is also the lock`, "ran once."},
		{works, "/optimistic", "optimistic-1", []string{`refused, because there is a record: it is completed`, `to client: 201 Created: the first answer again$`}, `The handler ran, but .* refused this attempt's answer.*stored answer is returned\.$`, "ran twice."},
		{"kill", "/optimistic", "optimistic-2", []string{`has run the handler, and dies`, `is killed`, `Lambda to client: 500`}, `died before it changed a record, so the next request runs the handler`, "ran once."},
		{works, "/shared", "shared-1", []string{`locks the record .* \[in progress\]$`, `stores the answer .* \[completed\]$`}, `There was no record`, "ran once."},
		{works, "/shared", "shared-1", []string{`refused, because there is a record: it is completed, and here is its answer$`}, `the handler does not run again`, "ran once."},
		{"lock", "/shared", "shared-2", []string{`it has this attempt's own token, so this attempt has the lock$`, `: runs the handler$`}, `own token`, "ran once."},
		{works, "/slow", "slow-1", []string{`^Lambda to client: 503`}, `The process runs on`, ""},
	} {
		t.Run(step.key+" "+step.state, func(t *testing.T) {
			if step.state == "kill" || step.state == "lock" {
				do(t, w.page, "/fault/"+step.state, "")
				step.state = works
			}
			v := during(t, w, step.state, note(step.path, step.key))
			expect(t, v.lines(), step.lines...)
			if !regexp.MustCompile(step.look).MatchString(v.state.Look) || !strings.HasSuffix(v.state.Sum, step.sum) || step.sum == "" && v.state.Sum != "" {
				t.Errorf("it says to look for %q, and sums up %q; want %q and %q", v.state.Look, v.state.Sum, step.look, step.sum)
			}
			for _, e := range v.events {
				if e.Record != nil && step.path == "/shared" && !slices.Contains(e.Record.Fields, sequence.Field{Name: "attempt", Value: "1"}) {
					t.Errorf("the record is %+v", e.Record)
				}
			}
		})
	}
}

// A user's own functions move no money, and the page does not say that they do.
func TestNotes_StoriesSpeakOfNoMoney(t *testing.T) {
	w, err := startNotes()
	if err != nil {
		t.Fatal(err)
	}
	money := regexp.MustCompile(`(?i)[^.]*\b(money|paid|charged)\b[^.]*`)
	_, page := call(t, http.MethodGet, w.page, "")
	texts := []string{page}
	for _, story := range []string{"twice", "completion"} {
		do(t, w.page, "/story/"+story, note("/shared", "story-1"))
		texts = append(texts, until(t, w.page, "", idle).state.Look)
	}
	do(t, w.page, "/story/completion", note("/optimistic", "story-1"))
	texts = append(texts, until(t, w.page, "", idle).state.Look)
	for _, text := range texts {
		if said := money.FindString(text); said != "" {
			t.Errorf("it says %q", said)
		}
	}
}
