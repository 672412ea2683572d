package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// The page with the results, seen from the project's folder.
const pageFile = "docs/scoreboard.md"

// place is a part of the page that a command writes: what stands between two lines.
type place struct{ begins, ends string }

var (
	verdictsPlace = place{"<!-- verdicts: make scoreboard ARGS=-write -->\n", "<!-- end of verdicts -->\n"}
	evidencePlace = place{"<!-- evidence: make scoreboard ARGS=-write -->\n", "<!-- end of evidence -->\n"}
	timingsPlace  = place{"<!-- timings: make bench-peers ARGS=-write -->\n", "<!-- end of timings -->\n"}
)

// fill returns the page with another text in the place.
func (p place) fill(page []byte, text string) ([]byte, error) {
	head, rest, found := bytes.Cut(page, []byte(p.begins))
	_, tail, ended := bytes.Cut(rest, []byte(p.ends))
	if !found || !ended {
		return nil, fmt.Errorf("%s lacks the lines %q and %q", pageFile, p.begins, p.ends)
	}
	return []byte(string(head) + p.begins + "\n" + text + "\n" + p.ends + string(tail)), nil
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
	var t strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&t, format+"\n", args...) }

	var versions []string
	for _, p := range all {
		if v := b.Versions[p.Name]; v != "" {
			versions = append(versions, v)
		}
	}
	say("Run on %s with %s.\n", b.Date, strings.Join(versions, ", "))

	names, rule, sums := "", "", ""
	for _, p := range all {
		names += " " + p.Name + " |"
		rule += "---|"
		sums += " " + b.sum(p.Name) + " |"
	}
	say("| scenario |%s", names)
	say("|---|%s", rule)
	for _, sc := range scenarios {
		row := fmt.Sprintf("| [%s](#%s) |", sc.title, anchor(sc.title))
		for _, p := range all {
			row += " " + b.Results[sc.name][p.Name].Verdict + " |"
		}
		say("%s", row)
	}
	say("| **yes of what applies** |%s", sums)
	return t.String()
}

// evidence returns each scenario with its rule, and with what every peer did.
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

// sum returns how many scenarios that apply to a peer hold.
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
