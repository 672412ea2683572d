package window_test

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/localstack/rehearsal"
)

// A transfer stores the results of two steps, one of which is a call of an outside service. The page
// says which results a later attempt finds, and what the policy makes of the record.
func TestSteps_AreNotCarriedOutAgain(t *testing.T) {
	_, page := running(t)
	do(t, page, "/clear", "")
	send := func(policy, key string) string {
		return `{"sample":"transfer","policy":"` + policy + `","key":"` + key + `"}`
	}
	step := func(body, look string, lines ...string) {
		t.Helper()
		do(t, page, "/send", body)
		v := until(t, page, "", idle)
		expect(t, v.lines(), lines...)
		if !regexp.MustCompile(look).MatchString(v.state.Look) {
			t.Errorf("it says to look for %q; want %q", v.state.Look, look)
		}
	}
	const results = "the results of the steps clear and reserve"
	do(t, page, "/fault/kill", "")
	step(send("hold", "steps-1"), "But the record has "+results+": that is done.*held, because of policy hold", `is killed`)
	do(t, page, "/fault/response", "")
	do(t, page, "/fault/kill", "")
	step(send("rerun", "steps-2"), "Then the process dies.*"+results+".*the next attempt takes the record over.*the client knows nothing of this",
		`locks the record \(only if there is none that is valid\)`,
		`in a call inside the handler, stores the answer in a new record .*, with 2 effects of the handler and 1 check of another item, all or nothing \[completed\]$`,
		`done: the answer of the call inside the handler is stored$`,
		`stores the result of the step reserve \(only if`,
		`^transfers, process \d+ to clearing house: asks an outside service to clear the transfer$`,
		`^clearing house: clears the transfer, which can't be undone$`,
		`stores the result of the step clear \(only if`,
	)
	step(send("rerun", "steps-2"), `told to come back in 1 s: the other attempt can end at any moment`, `to client: 409 idempotency_in_progress`)
	until(t, page, "", func(v *view) bool { return matching(v.lines(), "the lease of key steps-2 .* is over") == 1 })
	step(send("rerun", "steps-2"), "has left a record, and its lease is over.*The record has "+results+", so the handler does not carry that out again",
		`runs the handler again, because no earlier run has stored the answer to this request\. The record has `+results+`: the handler does not carry that out again$`,
		`to client: 201 Created$`)
	step(send("rerun", "steps-1"), "A request with policy rerun changes nothing", `to client: 409 idempotency_attempt_abandoned`)
	decide(t, page, "key steps-1 of POST /transfers")
	step(send("hold", "steps-1"), "which was released without an answer.*the handler does not carry that out again", `to client: 201 Created$`)
}

// decide runs the operator's commands that the page shows, for the record with this title.
func decide(t *testing.T, page, title string) {
	t.Helper()
	v := until(t, page, "", idle)
	i := slices.IndexFunc(v.events, func(e sequence.Event) bool { return e.Record != nil && e.Record.Title == title })
	if i < 0 {
		t.Fatalf("no record of %s", title)
	}
	record := v.events[i].Record
	token := record.Fields[slices.IndexFunc(record.Fields, func(f sequence.Field) bool { return f.Name == "token" })].Value
	_, text := call(t, http.MethodGet, page, "")
	commands := regexp.MustCompile(`(?s)<pre id="operator"[^>]*>(.*?)</pre>`).FindStringSubmatch(text)
	if commands == nil {
		t.Fatal("the page shows no commands")
	}
	bin := t.TempDir()
	script := "set -e\n" + strings.NewReplacer("RECORD", "'"+record.ID+"'", "TOKEN", "'"+token+"'").Replace(html.UnescapeString(commands[1]))
	const live = 4 // idem's exit status while the lease, with a margin for clocks, is live
	for deadline := time.Now().Add(20 * time.Second); ; {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(output), "released") {
			return
		}
		if cmd.ProcessState.ExitCode() != live || time.Now().After(deadline) {
			t.Fatalf("%v:\n%s\n%s", err, script, output)
		}
	}
}

// A record that its attempt has given back is taken over at once, and the caption says why.
func TestTakeover_OfAReleasedRecordIsSaidToBe(t *testing.T) {
	w, err := start()
	if err != nil {
		t.Fatal(err)
	}
	during(t, w, "lost-replies", payment("released-1"))
	during(t, w, rehearsal.Works, payment("released-2")) // the process releases the other record first
	v := during(t, w, rehearsal.Works, payment("released-1"))
	if !regexp.MustCompile("there is a record, which was released without an answer").MatchString(v.state.Look) {
		t.Errorf("it says to look for %q", v.state.Look)
	}
}
