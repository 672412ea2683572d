package docs_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// diagram is one Mermaid block of a page.
type diagram struct {
	page  string // path of the page, from the project's root
	line  int    // number of the block's first line on the page
	kind  string // the first line, such as "sequenceDiagram"
	lines []string
}

// where returns the page and the line number of d.lines[i], for error messages.
func (d *diagram) where(i int) string { return fmt.Sprintf("%s:%d", d.page, d.line+1+i) }

// diagrams returns the Mermaid blocks of all pages.
func diagrams(t *testing.T) []diagram {
	t.Helper()
	var all []diagram
	walk(t, ".md", func(path string) {
		var in *diagram
		n := 0
		for line := range strings.Lines(read(t, path)) {
			n++
			line = strings.TrimSpace(line)
			switch {
			case line == "```mermaid":
				in = &diagram{page: path, line: n + 1}
			case in == nil:
			case line == "```":
				all = append(all, *in)
				in = nil
			case in.kind == "":
				in.kind = line
			default:
				in.lines = append(in.lines, line)
			}
		}
		if in != nil {
			t.Errorf("%s:%d: the diagram does not end", path, in.line)
		}
	})
	return all
}

// stateNames returns the names of the constants of lambdaidem.State.
func stateNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +State = "`).FindAllStringSubmatch(read(t, "lambdaidem/record.go"), -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Fatal("lambdaidem/record.go has no constants of State")
	}
	return names
}

// Mermaid shows no diagram at all if it can't read one of its lines.
func TestDiagrams_AreWellFormed(t *testing.T) {
	check := map[string]func(*testing.T, *diagram){
		"sequenceDiagram": isSequence, "stateDiagram-v2": isStateMachine, "flowchart TD": isFlowchart, "flowchart LR": isFlowchart,
	}
	for _, d := range diagrams(t) {
		if f := check[d.kind]; f != nil {
			f(t, &d)
		} else {
			t.Errorf("%s:%d: the diagram begins with %q, which is none of %q", d.page, d.line, d.kind, slices.Sorted(maps.Keys(check)))
		}
	}
}

// longestSequence is the maximum number of lines of a sequence diagram, so that a reader understands
// the diagram at a glance.
const longestSequence = 12

var (
	participant = regexp.MustCompile(`^participant (\w+) as .+$`)
	note        = regexp.MustCompile(`^Note over (\w+)(?:,(\w+))?: .+$`)
	message     = regexp.MustCompile(`^(\w+?)(?:->>|-->>|-x|--x)(\w+): .+$`)
)

// isSequence checks that every line is a participant, a note or a message, and that every
// participant is declared and used. No text may contain a semicolon or a number sign, because both have
// a special meaning in Mermaid.
func isSequence(t *testing.T, d *diagram) {
	t.Helper()
	if n := 1 + len(d.lines); n > longestSequence {
		t.Errorf("%s:%d: the diagram has %d lines; it may have %d", d.page, d.line, n, longestSequence)
	}
	used := map[string]bool{} // by participant
	for i, line := range d.lines {
		if strings.ContainsAny(line, ";#") {
			t.Errorf("%s: %q contains a semicolon or a number sign", d.where(i), line)
		}
		if m := participant.FindStringSubmatch(line); m != nil {
			used[m[1]] = false
			continue
		}
		m := note.FindStringSubmatch(line)
		if m == nil {
			m = message.FindStringSubmatch(line)
		}
		if m == nil {
			t.Errorf("%s: %q is no participant, note or message", d.where(i), line)
			continue
		}
		for _, name := range m[1:] {
			if _, declared := used[name]; name != "" && !declared {
				t.Errorf("%s: the participant %s is not declared", d.where(i), name)
			}
			used[name] = true
		}
	}
	for name, is := range used {
		if !is {
			t.Errorf("%s:%d: nothing happens to the participant %s", d.page, d.line, name)
		}
	}
}

var (
	namedState = regexp.MustCompile(`^state "([^"]+)" as (\w+)$`)
	initial    = regexp.MustCompile(`^\[\*\] --> (\w+)(?:: .+)?$`)
	stateNote  = regexp.MustCompile(`^note right of (\w+): .+$`)
	transition = regexp.MustCompile(`^(\w+) --> (\w+): (.+)$`)
)

// isStateMachine checks that every line names a state or is a note or a transition with a label, and
// that the states are those of the code. InProgress_Live is the state InProgress under a condition; the
// name that the diagram shows for it must begin with InProgress.
func isStateMachine(t *testing.T, d *diagram) {
	t.Helper()
	named := map[string]bool{}
	for i, line := range d.lines {
		var states []string
		if m := namedState.FindStringSubmatch(line); m != nil {
			named[m[2]] = true
			state, _, _ := strings.Cut(m[2], "_")
			if !strings.HasPrefix(m[1], state+", ") {
				t.Errorf("%s: the name of %s, %q, does not begin with its state", d.where(i), m[2], m[1])
			}
			states = m[2:]
		} else if m := initial.FindStringSubmatch(line); m != nil {
			states = m[1:]
		} else if m := stateNote.FindStringSubmatch(line); m != nil {
			states = m[1:]
		} else if m := transition.FindStringSubmatch(line); m != nil {
			states = m[1:3]
		} else {
			t.Errorf("%s: %q names no state, and is no note or transition with a label", d.where(i), line)
		}
		for _, id := range states {
			state, _, qualified := strings.Cut(id, "_")
			if !slices.Contains(stateNames(t), state) || qualified && !named[id] {
				t.Errorf("%s: %s is no state of a record, and is not declared", d.where(i), id)
			}
		}
	}
}

// isFlowchart checks that brackets and quotation marks are balanced, and that the Go files and packages
// that the flowchart names exist.
func isFlowchart(t *testing.T, d *diagram) {
	t.Helper()
	for i, line := range d.lines {
		for _, pair := range []string{"[]", "()"} {
			if strings.Count(line, pair[:1]) != strings.Count(line, pair[1:]) {
				t.Errorf("%s: %q has unbalanced brackets", d.where(i), line)
			}
		}
		if strings.Count(line, `"`)%2 != 0 {
			t.Errorf("%s: %q has unbalanced quotation marks", d.where(i), line)
		}
		for _, file := range regexp.MustCompile(`[\w*]+\.go\b`).FindAllString(line, -1) {
			if found, err := filepath.Glob(filepath.Join(root, "lambdaidem", file)); err != nil || len(found) == 0 {
				t.Errorf("%s: there is no lambdaidem/%s", d.where(i), file)
			}
		}
		for _, path := range regexp.MustCompile(`\b(?:cmd|dynamostore|lambdaidem|watch)(?:/[a-z]+)*\b`).FindAllString(line, -1) {
			if found, err := filepath.Glob(filepath.Join(root, path, "*.go")); err != nil || len(found) == 0 {
				t.Errorf("%s: there is no package %s", d.where(i), path)
			}
		}
	}
}

// Diagrams write the states as the constants in the code, so that a search of the code finds them.
func TestDiagrams_NameStatesAsTheCodeDoes(t *testing.T) {
	names := stateNames(t)
	state := regexp.MustCompile(`(?i)\b(?:in[ -]?progress|completed|released|absent)\b`)
	for _, d := range diagrams(t) {
		for i, line := range d.lines {
			for _, word := range state.FindAllString(line, -1) {
				if !slices.Contains(names, word) {
					t.Errorf("%s: %q is none of the states %q", d.where(i), word, names)
				}
			}
		}
	}
}
