package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

func newTestPrinter(colour bool) (*printer, *strings.Builder) {
	var text strings.Builder
	return &printer{w: &text, colour: colour}, &text
}

func TestWrongAnswerFailsTheDemoAndIsNamed(t *testing.T) {
	p, text := newTestPrinter(false)
	p.begin("A new key")
	p.check(true, "201", 201)
	if err := p.summary(); err != nil {
		t.Errorf("summary = %v; want none while all is as expected", err)
	}
	p.begin("The same again")
	p.check(false, "201 again", 500)
	err := p.summary()
	if err == nil || err.Error() != "1 of 2 checks failed" {
		t.Errorf("summary = %v; want 1 of 2 checks failed", err)
	}
	if want := "✗ 2. The same again: expected: 201 again; got: 500\n"; !strings.HasSuffix(text.String(), want) {
		t.Errorf("the report ends\n%s\nwant\n%s", text, want)
	}
}

func TestColourIsForTerminalsThatWantIt(t *testing.T) {
	plain, text := newTestPrinter(false)
	plain.begin("step")
	plain.answer(answer{status: 201, header: http.Header{}, body: "{}"})
	plain.check(true, "201", 201)
	if strings.Contains(text.String(), "\x1b") {
		t.Errorf("a plain report has escape sequences: %q", text)
	}
	colourful, text := newTestPrinter(true)
	colourful.begin("step")
	if want := "\n\x1b[1m1. step\x1b[0m\n"; text.String() != want {
		t.Errorf("a step is %q; want %q", text, want)
	}

	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if wantsColour(file) {
		t.Error("a file gets colour")
	}
	terminal, err := os.Open(os.DevNull) // a character device, like a terminal
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close() //nolint:errcheck // nothing was written
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !wantsColour(terminal) {
		t.Error("a terminal gets no colour")
	}
	t.Setenv("NO_COLOR", "1")
	if wantsColour(terminal) {
		t.Error("a terminal gets colour in spite of NO_COLOR")
	}
}

func TestRequestIsOneLine(t *testing.T) {
	p, text := newTestPrinter(false)
	p.request(order("alice", "order-1", "{\n}").with("X-B", "2").with("X-A", "1"))
	if want := "   → alice POST /payments  Idempotency-Key: order-1  X-A: 1  X-B: 2 {␤}\n"; text.String() != want {
		t.Errorf("the request is printed as %q; want %q", text, want)
	}
}

func TestProblemDocumentIsShownByCodeAndDetail(t *testing.T) {
	a := answer{status: 409, header: http.Header{"Content-Type": {"application/problem+json"}}, body: `{"code":"busy","detail":"Come back."}`}
	if got := a.gist(); got != "busy: Come back." {
		t.Errorf("gist = %q", got)
	}
	for _, body := range []string{"", "no JSON"} {
		a.body = body
		if got := a.gist(); got != body {
			t.Errorf("gist of %q = %q; want the body", body, got)
		}
	}
}

func TestTallyTellsTheOutcomesApart(t *testing.T) {
	var c tally
	for _, a := range []answer{
		{status: 201, header: http.Header{}},
		{status: 201, header: http.Header{replayMark: {"true"}}},
		{status: 409, header: http.Header{"Retry-After": {"1"}}},
		{status: 409, header: http.Header{}}, // without Retry-After, the answer is not from the guard
		{status: 500, header: http.Header{}},
	} {
		c.add(a)
	}
	if c != (tally{fresh: 1, replayed: 1, busy: 1, other: 2}) {
		t.Errorf("the tally is %s", &c)
	}
}

// A record that is held for an operator does not expire.
func TestL6_HeldRecordIsShownWithoutAnEnd(t *testing.T) {
	for expiration, want := range map[int64]string{0: "  does not expire\n", 1_800_000_000: "  expires Jan 1"} {
		p, text := newTestPrinter(false)
		p.record(record{Status: "INPROGRESS", Expiration: expiration})
		if !strings.Contains(text.String(), want) {
			t.Errorf("it is shown as %q; want %q in it", text, want)
		}
	}
}
