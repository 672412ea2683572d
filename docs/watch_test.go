package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What the page shows of the watch is what the tests nest and run: the lines of the template, the
// program, and watch.yaml's parameters with their defaults.
func TestDeploy_TheWatchIsTheOneThatIsTested(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/deploy.md"), "\n### The watch\n")
	section, _, closed := strings.Cut(section, "\n## ")
	if !found || !closed {
		t.Fatal("docs/deploy.md has no section on the watch")
	}
	for fence, path := range map[string]string{"yaml": "watch/testdata/template.yaml", "go": "functions/watch/main.go"} {
		block := regexp.MustCompile("(?s)```" + fence + "\n(.*?)```").FindStringSubmatch(section)
		if block == nil || !strings.Contains(unindented(read(t, path)), strings.TrimSpace(unindented(block[1]))) {
			t.Errorf("the page shows lines that are not in %s: %s", path, block)
		}
	}
	parameters, _ := at(fromYAML(t, read(t, "watch.yaml")), "Parameters").(map[string]any)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(section, -1)
	for _, row := range rows {
		want := "required"
		if p := at(parameters[row[1]], "Default"); p != nil {
			want = fmt.Sprintf("`%v`", p)
		}
		if _, there := parameters[row[1]]; !there || row[2] != want && want != "``" {
			t.Errorf("the page says that %s is %s; watch.yaml: %s", row[1], row[2], want)
		}
	}
	if len(rows) != len(parameters) {
		t.Errorf("the page has %d parameters, watch.yaml %d", len(rows), len(parameters))
	}
	alarms := 0
	resources, _ := at(fromYAML(t, read(t, "watch.yaml")), "Resources").(map[string]any)
	for name, r := range resources {
		if at(r, "Type") == "AWS::CloudWatch::Alarm" {
			if alarms++; !strings.Contains(section, name) {
				t.Errorf("the page does not name %s", name)
			}
		}
	}
	if alarms != 6 {
		t.Errorf("watch.yaml has %d alarms, the page says six", alarms)
	}
}
