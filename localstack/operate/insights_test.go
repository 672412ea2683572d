package operate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CloudWatch Logs Insights does not run here. So a query's filter is applied to what
// CloudWatch would have: every line of the functions, with those of their metrics.

// savedQuery returns the text of a query that monitoring.yaml saves.
func savedQuery(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "monitoring.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\n {6}Name: !Sub \$\{Service\}/` + name + `\n.*?\n {6}QueryString: \|\n((?: {8}[^\n]*\n)+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("monitoring.yaml saves no query %q", name)
	}
	return string(found[1])
}

// find returns the lines of the functions that the filter of a query lets pass. It fails the
// test if there are none.
func (w *world) find(t *testing.T, query string) (found []map[string]any) {
	t.Helper()
	filter := regexp.MustCompile(`(?m)^ *filter (.*?)(?: \||$)`).FindStringSubmatch(query)
	if filter == nil {
		t.Fatalf("the query has no filter: %s", query)
	}
	var passes []func(line map[string]any) bool
	for condition := range strings.SplitSeq(filter[1], " and ") {
		passes = append(passes, conditionOf(t, condition))
	}
	text, err := os.ReadFile(filepath.Join(w.folder, cloudFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var fields map[string]any
		if at := strings.IndexByte(line, '{'); at < 0 || json.Unmarshal([]byte(line[at:]), &fields) != nil {
			continue
		}
		if !slices.ContainsFunc(passes, func(pass func(map[string]any) bool) bool { return !pass(fields) }) {
			found = append(found, fields)
		}
	}
	if len(found) == 0 {
		t.Errorf("the query finds nothing: %s", query)
	}
	return found
}

// conditionOf returns a condition of the query language: that a field has a value, one of
// several values, or any value.
func conditionOf(t *testing.T, text string) func(line map[string]any) bool {
	t.Helper()
	if m := regexp.MustCompile(`^ispresent\((\w+)\)$`).FindStringSubmatch(text); m != nil {
		return func(line map[string]any) bool { return line[m[1]] != nil }
	}
	m := regexp.MustCompile(`^(\w+) (?:=|in) \[?("[^\]]*")\]?$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("this test knows no condition %q", text)
	}
	return func(line map[string]any) bool {
		value, isText := line[m[1]].(string)
		return isText && slices.Contains(strings.Split(m[2], ", "), `"`+value+`"`)
	}
}

// findsRecord checks that the lines that a saved query finds have a record among them, and
// returns those of the record.
func (w *world) findsRecord(t *testing.T, name, record string) (lines []map[string]any) {
	t.Helper()
	for _, line := range w.find(t, savedQuery(t, name)) {
		if line["record"] == record {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		t.Errorf("the query %q doesn't find %s", name, record)
	}
	return lines
}

// findsByItsQueries checks that each query on a page finds lines.
func (w *world) findsByItsQueries(t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	queries := regexp.MustCompile("`(filter [^`]*)`").FindAllStringSubmatch(string(text), -1)
	if len(queries) == 0 {
		t.Errorf("%s has no query", page)
	}
	for _, query := range queries {
		w.find(t, query[1])
	}
}
