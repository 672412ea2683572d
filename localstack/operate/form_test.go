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
