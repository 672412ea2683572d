package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The page's section on the watch shows lines of the template and of the program that the tests use. It
// lists the parameters of watch.yaml with their defaults, and names the alarms of watch.yaml.
func TestDeploy_TheWatchIsTheOneThatIsTested(t *testing.T) {
	text := section(t, "docs/deploy.md", "### The watch")
	for language, path := range map[string]string{"yaml": "watch/testdata/template.yaml", "go": "functions/watch/main.go"} {
		blocks := codeBlocks(text, language)
		if len(blocks) == 0 || !strings.Contains(unindented(read(t, path)), strings.TrimSpace(unindented(blocks[0]))) {
			t.Errorf("the page shows no lines of %s, or lines that are not in it: %s", path, blocks)
		}
	}
	parameters, _ := at(fromYAML(t, read(t, "watch.yaml")), "Parameters").(map[string]any)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(text, -1)
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
			if alarms++; !strings.Contains(text, name) {
				t.Errorf("the page does not name %s", name)
			}
		}
	}
	if alarms != 6 {
		t.Errorf("watch.yaml has %d alarms, the page says six", alarms)
	}
}
