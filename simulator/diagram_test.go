package simulator

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/internal/sequence"
)

// writeDiagram writes the diagram of a run into the folder of the flag html, if the flag is set. The
// file's name has the kind and the seed.
func writeDiagram(t *testing.T, kind string, r Report) {
	t.Helper()
	if *html == "" {
		return
	}
	path := filepath.Join(*html, fmt.Sprintf("%s-%d.html", kind, r.Seed))
	if err := errors.Join(os.MkdirAll(*html, 0o750), os.WriteFile(path, page(t, r), 0o600)); err != nil {
		t.Errorf("write the diagram of seed %d: %v", r.Seed, err)
		return
	}
	t.Logf("the diagram of seed %d: %s", r.Seed, path)
}

// page returns the HTML page of a run's diagram.
func page(t *testing.T, r Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := sequence.WriteHTML(&out, r.Diagram()); err != nil {
		t.Fatalf("draw seed %d: %v", r.Seed, err)
	}
	return out.Bytes()
}

func TestDiagram_SameSeedSamePage(t *testing.T) {
	for seed := range uint64(20) {
		if once, again := page(t, runSeed(t, seed, nil, true)), page(t, runSeed(t, seed, nil, true)); !bytes.Equal(once, again) {
			t.Errorf("seed %d has two pages", seed)
		}
	}
}

func TestDiagram_OnlyOfRunsWithATimeline(t *testing.T) {
	if r := runSeed(t, 0, nil, false); r.Timeline != "" || r.Diagram != nil {
		t.Errorf("a run that broke no rule has a timeline of %d bytes, and a diagram: %v", len(r.Timeline), r.Diagram != nil)
	}
}

// The diagram shows what each fault does to the messages, the process and the record. The first
// request of one attempt, which claims the record, meets the fault.
func TestDiagram_ShowsWhatAFaultDoes(t *testing.T) {
	begins := []string{
		"client call process 1: POST /payments of alice, key k, payload p",
		"process 1 begin: starts, policy rerun",
	}
	claimed := "process 1 call DynamoDB: claim the record [in progress]"
	for fault, want := range map[Fault][]string{
		None:        {claimed, "DynamoDB reply process 1: done"},
		RequestLost: {"process 1 call DynamoDB: claim the record LOST", "process 1 note: gets no reply to: claim the record"},
		ReplyLost:   {claimed, "DynamoDB reply process 1: its reply to: claim the record LOST", "process 1 note: gets no reply to: claim the record"},
		Throttled:   {"process 1 call DynamoDB: claim the record", "DynamoDB reply process 1: 400 ThrottlingException"},
		FailBefore:  {"process 1 call DynamoDB: claim the record", "DynamoDB reply process 1: 500 InternalServerError"},
		FailAfter:   {claimed, "DynamoDB reply process 1: 500 InternalServerError"},
		Conflict:    {"process 1 call DynamoDB: claim the record", "DynamoDB reply process 1: 400 TransactionConflictException"},
		RequestLate: {"process 1 note: sends, and the network delays: claim the record", "process 1 note: gets no reply to: claim the record"},
		KillBefore:  {"process 1 call DynamoDB: claim the record LOST", "process 1 end: dies: killed before", "process 1 reply client: answers process died"},
		KillAfter:   {claimed, "process 1 end: dies: killed after", "process 1 reply client: answers process died"},
		Stall:       {"process 1 note: stands still before it sends: claim the record"},
		Twice:       {claimed, "DynamoDB reply process 1: done"},
	} {
		t.Run(string(fault), func(t *testing.T) {
			got := eventLines(playWith(t, fault))
			want := slices.Concat([]string{"world note: the run begins"}, begins, want)
			if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				t.Errorf("the diagram begins with\n%s\nwant\n%s", strings.Join(got[:min(len(got), len(want)+3)], "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// playWith plays one attempt whose first request meets a fault.
func playWith(t *testing.T, fault Fault) sequence.Diagram {
	t.Helper()
	c := Small{Attempts: []Ending{Created}, Faults: 1, Only: []Fault{fault}}
	var script []int
	if fault == None {
		c.Faults = 0
	} else {
		script = []int{1} // move 0 is the request without a fault
	}
	var r Report
	synctest.Test(t, func(*testing.T) { r, _, _ = Play(c, script, true) })
	return r.Diagram()
}

// eventLines returns a line for each event of a diagram.
func eventLines(d sequence.Diagram) []string {
	var lines []string
	for _, e := range d.Events {
		line := strings.TrimSuffix(fmt.Sprintf("%s %s %s", e.From, e.Kind, e.To), " ") + ": " + e.Text
		if e.Lost {
			line += " LOST"
		}
		if e.Record != nil {
			line += " [" + string(e.Record.State) + "]"
		}
		lines = append(lines, line)
	}
	return lines
}

// The answer of an attempt ends its process, and a completed record has the answer.
func TestDiagram_ShowsTheRecordAndTheAnswer(t *testing.T) {
	d := playWith(t, None)
	at := slices.IndexFunc(d.Events, func(e sequence.Event) bool { return e.Record != nil && e.Record.State == sequence.Completed })
	if at < 0 {
		t.Fatalf("no event completes the record: %q", eventLines(d))
	}
	record := d.Events[at].Record
	if first := (sequence.Field{Name: "status", Value: "COMPLETED"}); record.Title != "alice/k" || record.Fields[0] != first {
		t.Errorf("the record is %q with %+v first; want alice/k with %+v", record.Title, record.Fields[0], first)
	}
	data := slices.IndexFunc(record.Fields, func(f sequence.Field) bool { return f.Name == "data" })
	if data < 0 || !strings.Contains(record.Fields[data].Value, "alice/k/p by attempt 1 of process 1") {
		t.Errorf("the record's fields are %+v; want data with the answer", record.Fields)
	}
	answers := slices.IndexFunc(d.Events, func(e sequence.Event) bool { return e.Kind == sequence.Reply && e.To == "client" })
	if answers < at || !d.Events[answers].Ends {
		t.Errorf("no answer after the completion ends process 1: %q", eventLines(d))
	}
}

// The diagram of this seed shows what docs/correctness.md says.
func TestDiagram_ShowsWhatTheDocsSayOfASeed(t *testing.T) {
	lines := eventLines(runSeed(t, 50028478, nil, true).Diagram())
	for n := 1; n <= 3; n++ {
		if line := fmt.Sprintf("operator %d note: looks, to settle", n); !slices.Contains(lines, line) {
			t.Errorf("the diagram has no event %q", line)
		}
	}
	settled := slices.Index(lines, "operator 3 call DynamoDB: settle the record [completed]")
	if settled < 0 || lines[settled+1] != "DynamoDB reply operator 3: 500 InternalServerError" {
		t.Errorf("the diagram has no reply 500 to operator 3 after the record was settled:\n%s", strings.Join(lines, "\n"))
	}
}

// Diagrams also show what happens in only a few runs.
func TestDiagram_ShowsWhatFewRunsDo(t *testing.T) {
	to := func(e sequence.Event, party string) bool { return strings.HasPrefix(e.To, party) }
	says := func(text string) func(sequence.Event) bool {
		return func(e sequence.Event) bool { return strings.Contains(e.Text, text) }
	}
	leaves := func(state sequence.State) func(sequence.Event) bool {
		return func(e sequence.Event) bool { return e.Record != nil && e.Record.State == state }
	}
	missing := map[string]func(sequence.Event) bool{
		"an answer that a client did not wait for": func(e sequence.Event) bool { return e.Kind == sequence.Reply && e.Lost && to(e, "client") },
		"the client that did not wait":             func(e sequence.Event) bool { return says("stops waiting")(e) && strings.HasPrefix(e.From, "client") },
		"an operator's request":                    func(e sequence.Event) bool { return e.Kind == sequence.Call && strings.HasPrefix(e.From, "operator") },
		"an operator's success":                    says("is told: it is done"),
		"a request that came twice":                says("claim the record, a copy"),
		"a late request":                           says("on the way"),
		"a canceled transaction":                   says("canceled: "),
		"a transaction that does not finish":       says("DynamoDB does not finish"),
		"a request without a key":                  says("no key"),
		"a request with another method":            says("PUT /payments"),
		"an optimistic attempt":                    says("starts, optimistic"),
		"an effect":                                func(e sequence.Event) bool { return e.Kind == sequence.Effect },
		"an expired record":                        func(e sequence.Event) bool { return leaves(sequence.Deleted)(e) && e.From == "DynamoDB" },
		"a released record":                        leaves(sequence.Released),
		"a held record":                            leaves(sequence.Held),
		"a record of an inner call":                func(e sequence.Event) bool { return e.Record != nil && e.Record.Title == "inner call" },
	}
	const most = 2000
	seed := uint64(0)
	for ; seed < most && len(missing) > 0; seed++ {
		for _, e := range runSeed(t, seed, nil, true).Diagram().Events {
			maps.DeleteFunc(missing, func(_ string, shows func(sequence.Event) bool) bool { return shows(e) })
		}
	}
	t.Logf("%d seeds show everything", seed)
	for what := range missing {
		t.Errorf("no diagram of %d seeds shows %s", most, what)
	}
}

func TestDiagram_ShowsTheRegions(t *testing.T) {
	for seed := range uint64(200) {
		var r Report
		synctest.Test(t, func(*testing.T) { r = RunRegions(seed, memdynamo.Eventual, failing(waits{}), nil, true) })
		lines := eventLines(r.Diagram())
		unreached := slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, "call DynamoDB, eu-central-1: ") && strings.HasSuffix(line, " LOST")
		})
		other := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "call DynamoDB, eu-west-1: ") })
		if r.Paths[Unreached] > 0 && unreached && other {
			return
		}
	}
	t.Error("no run shows a request that does not reach the failed Region, and one to the other Region")
}
