package main

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
)

// An answer belongs to the call whose handler returned exactly this status, header and body.
func TestObservation_NamesTheHandlerOfAnAnswer(t *testing.T) {
	first := &sent{name: "first", script: driver.Script{Status: 201, Body: []byte("first")}}
	tests := map[string]struct {
		answer driver.Answer
		want   received
	}{
		"its own":        {driver.Answer{Status: 201, Location: driver.Location, Body: []byte("retry")}, received{from: "retry", text: "its own answer (201)"}},
		"another's":      {driver.Answer{Status: 201, Location: driver.Location, Body: []byte("first")}, received{from: "first", text: "the answer of first (201)"}},
		"other status":   {driver.Answer{Status: 200, Location: driver.Location, Body: []byte("first")}, received{text: "200 with an answer of nobody (5 bytes)"}},
		"lost header":    {driver.Answer{Status: 201, Body: []byte("first")}, received{text: "201 with an answer of nobody (5 bytes)"}},
		"other bytes":    {driver.Answer{Status: 201, Location: driver.Location, Body: []byte("f")}, received{text: "201 with an answer of nobody (1 bytes)"}},
		"a problem":      {driver.Answer{Status: 409, Body: []byte(`{"type":"t","code":"in_progress"}`)}, received{refused: true, text: "refused (409 in_progress)"}},
		"a problem type": {driver.Answer{Status: 423, Body: []byte(`{"type":"urn:busy"}`)}, received{refused: true, text: "refused (423 urn:busy)"}},
		"an error":       {driver.Answer{Error: "Busy"}, received{refused: true, text: "refused (Busy)"}},
		"the handler's":  {driver.Answer{Error: driver.ScriptedError}, received{text: driver.ScriptedError}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			retry := &sent{name: "retry", script: driver.Script{Status: 201, Body: []byte("retry")}, answered: true, result: tt.answer}
			s := &stage{sent: []*sent{first, retry}}
			if got := s.judge(retry); got != tt.want {
				t.Errorf("judge = %+v; want %+v", got, tt.want)
			}
			o, evidence := s.observe()
			if want := "the handler never ran; retry: " + tt.want.text; evidence != want {
				t.Errorf("the evidence is %q; want %q", evidence, want)
			}
			if o.refused("retry") != tt.want.refused || o.from("retry", "first") != (tt.want.from == "first") {
				t.Errorf("a rule sees %+v; want %+v", o, tt.want)
			}
		})
	}
}

// The evidence has one line for a crowd. It says whether a caller received an answer that no handler
// returned.
func TestObservation_CrowdWithAnAnswerOfNobody(t *testing.T) {
	one := func(body string) *sent {
		return &sent{
			name: "all at once", many: true, answered: true, script: driver.Script{Status: 201, Body: []byte("all at once")},
			result: driver.Answer{Status: 201, Location: driver.Location, Body: []byte(body)},
		}
	}
	for body, want := range map[string]string{
		"all at once": "2 callers all at once: each received an answer of the handler or was refused",
		"half":        "2 callers all at once: some received an answer of nobody",
	} {
		s := &stage{sent: []*sent{one("all at once"), one(body)}}
		if _, evidence := s.observe(); evidence != "the handler never ran; "+want {
			t.Errorf("the evidence is %q; want %q", evidence, want)
		}
	}
}

// The error of compare names the result that differs.
func TestScoreboard_CompareNamesADifference(t *testing.T) {
	b := committed(t)
	if err := b.compare(root); err != nil {
		t.Errorf("the committed results differ from themselves: %v", err)
	}
	b.set("retry", "idemkit", result{no, "the handler ran twice"})
	err := b.compare(root)
	if err == nil || !strings.Contains(err.Error(), "retry, idemkit: was yes") || !strings.Contains(err.Error(), "is no (the handler ran twice)") {
		t.Errorf("compare = %v; want an error that names the difference", err)
	}
}
