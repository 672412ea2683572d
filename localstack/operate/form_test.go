package operate_test

import (
	"regexp"
	"strings"
	"testing"
)

// The page promises one form for all sections, so that a reader in a hurry finds each step under
// the same words.
func TestD2_OperateMD_SectionsHaveOneForm(t *testing.T) {
	p := readPage(t)
	parts := map[string]string{}
	begun := false
	for _, title := range p.titles {
		if begun {
			parts[title], _, _ = strings.Cut(p.text[title], "\n### ")
		}
		begun = begun || title == setUpTitle
		for _, subsection := range strings.Split(p.text[title], "\n### ")[1:] {
			name, text, _ := strings.Cut(subsection, "\n")
			if name != "A handler that makes guarded calls" { // belongs to "A key is held", and is no incident
				parts[name] = text
			}
		}
	}
	if len(parts) < 20 {
		t.Fatalf("the page has %d sections", len(parts))
	}
	for title, text := range parts {
		for what, form := range map[string]string{
			"first command": `\*\*First`, "decision": `(?i)\*\*decide`, "verification": `\*\*Verify`,
			"reason to stop": `\*\*Stop and `, "sentence for customers": `\*\*Tell (the )?(customer|client)`,
		} {
			if !regexp.MustCompile(form).MatchString(text) {
				t.Errorf("%q has no %s (%s)", title, what, form)
			}
		}
	}
}

// Every AWS CLI command in a sentence of the page, or of docs/regions.md, to which the page sends
// its reader, exists and has the options given. Commands of CloudWatch Logs and CloudTrail are
// not checked, because the SDK's clients for these services are not dependencies.
func TestD2_OperateMD_NamesCommandsOfAWS(t *testing.T) {
	commands, services := 0, clients(t.Context())
	for _, page := range []string{pagePath, "../../docs/regions.md"} {
		for _, m := range regexp.MustCompile("aws (dynamodb|sqs|kms|lambda) ([a-z-]+)([^`\n|]*)").FindAllStringSubmatch(readFile(t, page), -1) {
			commands++
			method, known := operation(services, m[1], m[2])
			if !known {
				t.Errorf("%s has no operation %s", m[1], m[2])
				continue
			}
			input := method.Type().In(1).Elem()
			for _, option := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(m[3], -1) {
				member := pascal(strings.TrimPrefix(option[1], "no-"))                        // --no-NAME sets a boolean member to false
				isMember := func(name string) bool { return strings.EqualFold(name, member) } // the SDK writes UUID
				if _, found := input.FieldByNameFunc(isMember); !found && !ofEveryCommand[option[1]] {
					t.Errorf("aws %s %s has no option --%s", m[1], m[2], option[1])
				}
			}
		}
	}
	if commands < 15 {
		t.Errorf("the pages name %d commands", commands)
	}
}

// A call that ran without its record leaves no trace in the table, so no record and no downstream
// key tells of it. Each part of the page that concludes from them that nothing happened sends the
// reader to the log lines of such calls first.
func TestO2_OperateMD_ConcludesNothingWithoutTheLogOfUnguardedCalls(t *testing.T) {
	page := readPage(t)
	for _, c := range []struct {
		section, conclusion string
		names               []string
	}{
		{"A payment is stuck", "none: exit code 3", []string{"failed_open", "switched_off"}},
		{"A key is held", "it did not happen, and", []string{"switched_off"}}, // a call that failed open has the downstream key of its record
		{"A key is held", "| not there |", []string{"failed_open", "switched_off"}},
		{"An outage under Hold", "filter-pattern", []string{"failed_open", "switched_off"}},
	} {
		found := false
		for line := range strings.Lines(page.section(t, c.section)) {
			if !strings.Contains(line, c.conclusion) {
				continue
			}
			found = true
			for _, name := range c.names {
				if !strings.Contains(line, name) {
					t.Errorf("%q concludes something from %q and does not name %s", c.section, c.conclusion, name)
				}
			}
		}
		if !found {
			t.Errorf("%q has no %q", c.section, c.conclusion)
		}
	}
}
