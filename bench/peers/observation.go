package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/bench/peers/driver"
)

// received describes the answer that one caller received.
type received struct {
	from    string // the name of the call whose handler made the answer; empty if no handler made it
	refused bool   // the guard answered, with an error or with a status of 400 or more
	text    string // describes the answer in the evidence
}

// seen has the facts that a rule judges.
type seen struct {
	runs    int                   // how often the handler ran
	answers map[string][]received // by the name of the call
	notes   []string
}

// from reports whether every caller with the name received the answer of the named handler.
func (o seen) from(name, handler string) bool {
	return o.each(name, func(a received) bool { return a.from == handler })
}

// refused reports whether every caller with the name was refused.
func (o seen) refused(name string) bool {
	return o.each(name, func(a received) bool { return a.refused })
}

// each reports whether there are callers with the name, and is holds for all of their answers.
func (o seen) each(name string, is func(received) bool) bool {
	for _, a := range o.answers[name] {
		if !is(a) {
			return false
		}
	}
	return len(o.answers[name]) > 0
}

// observe returns what happened on the stage, and the evidence: one line that describes it.
func (s *stage) observe() (seen, string) {
	o := seen{runs: int(s.runs.Load()), answers: map[string][]received{}, notes: s.notes}
	parts := []string{"the handler " + ran(o.runs)}
	var crowd string
	for _, c := range s.sent {
		if !c.answered {
			continue
		}
		a := s.judge(c)
		o.answers[c.name] = append(o.answers[c.name], a)
		if !c.many {
			parts = append(parts, c.name+": "+a.text)
		} else {
			crowd = c.name
		}
	}
	if crowd != "" {
		parts = slices.Insert(parts, 1, o.describeCrowd(crowd))
	}
	return o, strings.Join(append(parts, s.notes...), "; ")
}

// describeCrowd describes what the callers of a crowd received. It doesn't say how many of them were
// refused, because that number differs from run to run.
func (o seen) describeCrowd(name string) string {
	text := "each received an answer of the handler or was refused"
	if !o.each(name, func(a received) bool { return a.from == name || a.refused }) {
		text = "some received an answer of nobody"
	}
	return fmt.Sprintf("%d callers %s: %s", len(o.answers[name]), name, text)
}

// judge finds out who made the answer of a call.
func (s *stage) judge(c *sent) received {
	a := c.result
	if a.Error != "" {
		return received{refused: a.Error != driver.ScriptedError, text: describeError(a.Error)}
	}
	for _, by := range s.sent {
		if a.Status == by.script.Status && bytes.Equal(a.Body, by.script.Body) && a.Location == driver.Location {
			whose := "the answer of " + by.name
			if by.name == c.name {
				whose = "its own answer"
			}
			return received{from: by.name, text: fmt.Sprintf("%s (%d)", whose, a.Status)}
		}
	}
	if a.Status >= 400 {
		return received{refused: true, text: fmt.Sprintf("refused (%d %s)", a.Status, problem(a.Body))}
	}
	return received{text: fmt.Sprintf("%d with an answer of nobody (%d bytes)", a.Status, len(a.Body))}
}

func describeError(text string) string {
	if text == driver.ScriptedError {
		return text
	}
	return "refused (" + text + ")"
}

// problem returns the code of a problem document, or else its type. It returns the first 60 bytes of
// any other body.
func problem(body []byte) string {
	var document struct{ Code, Type string }
	if json.Unmarshal(body, &document) == nil {
		if document.Code != "" {
			return document.Code
		}
		if document.Type != "" {
			return document.Type
		}
	}
	return strings.TrimSpace(string(body[:min(len(body), 60)]))
}

func ran(n int) string {
	switch n {
	case 0:
		return "never ran"
	case 1:
		return "ran once"
	case 2:
		return "ran twice"
	}
	return fmt.Sprintf("ran %d times", n)
}
