package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// The page with the results, seen from the project's folder.
const pageFile = "docs/scoreboard.md"

// The results stand between these lines of the page.
const (
	beginsResults = "<!-- results: make scoreboard ARGS=-write -->\n"
	endsResults   = "<!-- end of results -->\n"
)

// into returns the page with the results in their place.
func (b scoreboard) into(page []byte) ([]byte, error) {
	head, rest, found := bytes.Cut(page, []byte(beginsResults))
	_, tail, ended := bytes.Cut(rest, []byte(endsResults))
	if !found || !ended {
		return nil, errors.New(pageFile + " lacks the lines between which the results stand")
	}
	return []byte(string(head) + beginsResults + "\n" + b.markdown() + "\n" + endsResults + string(tail)), nil
}

// markdown returns the versions, the table of verdicts, and each scenario with its rule and
// its evidence.
func (b scoreboard) markdown() string {
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

	for _, sc := range scenarios {
		say("\n### %s\n", sc.title)
		say("%s *Rule:* %s\n", sc.story, sc.rule)
		for _, p := range all {
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
