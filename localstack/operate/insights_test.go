package operate_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CloudWatch Logs Insights does not run here. These tests apply a query's filter to the lines
// that CloudWatch would have, which include the lines of metrics.

// savedQuery returns the text of a query that monitoring.yaml saves.
func savedQuery(t *testing.T, name string) string {
	t.Helper()
	text := readFile(t, filepath.Join("..", "..", "monitoring.yaml"))
	found := regexp.MustCompile(`(?s)\n {6}Name: !Sub \$\{Service\}/` + name + `\n.*?\n {6}QueryString: \|\n((?: {8}[^\n]*\n)+)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("monitoring.yaml saves no query %q", name)
	}
	return found[1]
}

// find returns the JSON objects that the functions have logged and that pass the filter of a
// query. The test fails if there are none.
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
	for line := range strings.Lines(readFile(t, filepath.Join(w.folder, cloudFile))) {
		_, fields := objectIn(line)
		if fields != nil && !slices.ContainsFunc(passes, func(pass func(map[string]any) bool) bool { return !pass(fields) }) {
			found = append(found, fields)
		}
	}
	if len(found) == 0 {
		t.Errorf("the query finds nothing: %s", query)
	}
	return found
}

// conditionOf parses a condition of the query language and returns a function that reports
// whether a log line meets the condition. It accepts ispresent(FIELD), FIELD = "VALUE" and
// FIELD in ["VALUE", "VALUE"].
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

// findsRecord runs a saved query and returns the lines about a record. The test fails if there
// are none.
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

// findsByItsQueries checks that each query on a page of docs finds log lines.
func (w *world) findsByItsQueries(t *testing.T, page string) {
	t.Helper()
	text := readFile(t, filepath.Join("..", "..", "docs", page))
	queries := regexp.MustCompile("`(filter [^`]*)`").FindAllStringSubmatch(text, -1)
	if len(queries) == 0 {
		t.Errorf("%s has no query", page)
	}
	for _, query := range queries {
		w.find(t, query[1])
	}
}
