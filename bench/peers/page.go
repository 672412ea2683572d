package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/lambdaidem/toolkit/bench/internal/table"
)

// pageFile is the path of the page with the results, from the project's folder.
const pageFile = "docs/scoreboard.md"

// place is a part of the page that this program writes: the text between two lines.
type place struct{ begin, end string }

var (
	verdictsPlace = place{"<!-- verdicts: make scoreboard ARGS=-write -->\n", "<!-- end of verdicts -->\n"}
	evidencePlace = place{"<!-- evidence: make scoreboard ARGS=-write -->\n", "<!-- end of evidence -->\n"}
	timingsPlace  = place{"<!-- timings: make bench-peers ARGS=-write -->\n", "<!-- end of timings -->\n"}
)

// fill returns the page with the text in the place, between empty lines.
func (p place) fill(page []byte, text string) ([]byte, error) {
	page, err := table.Replace(page, p.begin, p.end, "\n"+text+"\n")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pageFile, err)
	}
	return page, nil
}

// into returns the page with the results in their places.
func (b scoreboard) into(page []byte) ([]byte, error) {
	page, err := verdictsPlace.fill(page, b.verdicts())
	if err != nil {
		return nil, err
	}
	return evidencePlace.fill(page, b.evidence())
}

// verdicts returns the versions and the table of verdicts.
func (b scoreboard) verdicts() string {
	all := peers(".")
	var versions []string
	head, sums := []string{"scenario"}, []string{"**yes of what applies**"}
	for _, p := range all {
		if v := b.Versions[p.Name]; v != "" {
			versions = append(versions, v)
		}
		head = append(head, p.Name)
		sums = append(sums, b.sum(p.Name))
	}
	rows := table.Table{head}
	for _, sc := range scenarios {
		row := []string{fmt.Sprintf("[%s](#%s)", sc.title, anchor(sc.title))}
		for _, p := range all {
			row = append(row, b.Results[sc.name][p.Name].Verdict)
		}
		rows = append(rows, row)
	}
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "Run on %s with %s.\n\n", b.Date, strings.Join(versions, ", "))
	_ = append(rows, sums).Markdown(&text) // a strings.Builder returns no errors
	return text.String()
}

// evidence returns a section for each scenario: its story, its rule, and what every peer did.
func (b scoreboard) evidence() string {
	var t strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&t, format+"\n", args...) }
	for i, sc := range scenarios {
		if i > 0 {
			say("")
		}
		say("### %s\n", sc.title)
		say("%s *Rule:* %s\n", sc.story, sc.rule)
		for _, p := range peers(".") {
			r := b.Results[sc.name][p.Name]
			say("- %s: **%s.** %s.", p.Name, r.Verdict, sentence(r.Evidence))
		}
	}
	return t.String()
}

// sum returns how many of the scenarios that apply to a peer have the verdict yes, as "5 of 7".
func (b scoreboard) sum(peer string) string {
	held, applied := 0, 0
	for _, sc := range scenarios {
		switch b.Results[sc.name][peer].Verdict {
		case yes:
			held++
			applied++
		case no:
			applied++
		}
	}
	return fmt.Sprintf("%d of %d", held, applied)
}

// anchor returns the fragment that GitHub gives a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
