package sequence_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
)

// lostReply returns a diagram in which a reply is lost and a client repeats its request.
func lostReply() sequence.Diagram {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	record := func(state sequence.State, status string) *sequence.Record {
		return &sequence.Record{ID: "r", Title: "alice/k0", State: state, Fields: []sequence.Field{{Name: "status", Value: status}, {Name: "attempt", Value: "1"}}}
	}
	return sequence.Diagram{
		Title: "A lost reply", Summary: "A client pays once, and asks twice.",
		Parties: []sequence.Party{
			{ID: "db", Name: "DynamoDB", Kind: sequence.Database},
			{ID: "c", Name: "client", Kind: sequence.Client},
			{ID: "p1", Name: "process 1", Kind: sequence.Process},
			{ID: "p2", Name: "process 2", Kind: sequence.Process},
		},
		Events: []sequence.Event{
			{At: ms(0), From: "c", To: "p1", Request: "1", Kind: sequence.Call, Text: "POST /payments", Detail: `{"amount": "</script><b>5</b>"}`},
			{At: ms(1), From: "p1", Request: "1", Kind: sequence.Begin, Text: "starts"},
			{At: ms(2), From: "p1", To: "db", Request: "1", Kind: sequence.Call, Text: "PutItem", Record: record(sequence.InProgress, "INPROGRESS")},
			{At: ms(4), From: "p1", Request: "1", Kind: sequence.Effect, Text: "pays"},
			{At: ms(5), From: "p1", To: "db", Request: "1", Kind: sequence.Call, Text: "UpdateItem", Record: record(sequence.Completed, "COMPLETED")},
			{At: ms(6), From: "db", To: "p1", Request: "1", Kind: sequence.Reply, Text: "applied", Lost: true},
			{At: ms(7), From: "p1", Request: "1", Kind: sequence.End, Text: "is killed"},
			{At: ms(9), From: "c", To: "p2", Request: "2", Kind: sequence.Call, Text: "POST /payments again"},
			{At: ms(10), From: "p2", Request: "2", Kind: sequence.Note, Text: "<img src=x onerror=alert(1)> was paid twice", Wrong: true},
		},
	}
}

func html(t *testing.T, d sequence.Diagram) string {
	t.Helper()
	var out bytes.Buffer
	if err := sequence.WriteHTML(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriteHTML_EqualDiagramsAreEqualBytes(t *testing.T) {
	if once, again := html(t, lostReply()), html(t, lostReply()); once != again {
		t.Error("two files of one diagram differ")
	}
}

func TestWriteHTML_LoadsNothing(t *testing.T) {
	file := html(t, sequence.Diagram{})
	for _, way := range []string{"http:", "https:", "//cdn", "url(", "@import", "<link", "<iframe", " src=", " href=", "fetch(", "import("} {
		if strings.Contains(file, way) {
			t.Errorf("the file has %q", way)
		}
	}
	if !strings.Contains(file, `content="default-src 'none'; `) {
		t.Error("the file's Content-Security-Policy does not begin with default-src 'none'")
	}
}

// No text of the diagram becomes HTML in the file. The tests in browser_test.go check the page.
func TestWriteHTML_TextsAreNotHTML(t *testing.T) {
	d := lostReply()
	d.Title, d.Summary = "<i>title</i>", "<i>summary</i>"
	file := html(t, d)
	for _, tag := range []string{"<i>", "<b>", "<img"} {
		if strings.Contains(file, tag) {
			t.Errorf("the file has the tag %s of a text", tag)
		}
	}
	if n := strings.Count(file, "</script>"); n != 2 {
		t.Errorf("the file has %d script end tags; want those of its 2 scripts", n)
	}
}

func TestWriteHTML_RefusesEventsOfUnknownParties(t *testing.T) {
	for name, change := range map[string]func(*sequence.Diagram){
		"unknown From": func(d *sequence.Diagram) { d.Events[3].From = "nobody" },
		"unknown To":   func(d *sequence.Diagram) { d.Events[0].To = "nobody" },
		"no From":      func(d *sequence.Diagram) { d.Events[0].From = "" },
		"same ID":      func(d *sequence.Diagram) { d.Parties[1].ID = "db" },
		"no ID":        func(d *sequence.Diagram) { d.Parties[1].ID = "" },
	} {
		d := lostReply()
		change(&d)
		var out bytes.Buffer
		if err := sequence.WriteHTML(&out, d); err == nil || out.Len() > 0 {
			t.Errorf("%s: error %v, and %d bytes written; want an error and nothing written", name, err, out.Len())
		}
	}
}
