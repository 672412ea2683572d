package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The alarms that docs/metrics.md shows for copying read metrics that a guard writes, have the
// thresholds of the template's alarms of the same names, and are listed in the runbook.
func TestO1_TheSmallestSetOfAlarmsIsTheTemplates(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### The smallest set of alarms\n")
	_, snippet, shown := strings.Cut(section, "```yaml\n")
	snippet, _, closed := strings.Cut(snippet, "```")
	if !found || !shown || !closed {
		t.Fatal("docs/metrics.md has no smallest set of alarms")
	}
	var doc struct {
		Parameters map[string]any
		Resources  map[string]resource `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(snippet), &doc); err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := sections(string(runbook))["an-alarm-rings"]
	there, alarms := everythingCounted(t), deployedResources(t)
	for name, r := range doc.Resources {
		if got, want := thresholdRow(t, name, r), thresholdRow(t, name, alarms[name]); got != want {
			t.Errorf("the page's alarm is\n%s\nthe template's is\n%s", got, want)
		}
		if !strings.Contains(table, name) {
			t.Errorf("the runbook's table has no row for %s", name)
		}
		in, _ := inputs(t, name, r)
		for _, i := range in {
			guards := !strings.HasPrefix(i.namespace, "AWS/")
			if guards && !there[i.counted] {
				t.Errorf("%s is on %+v, which nobody writes", name, i.counted)
			}
			if function := i.values["function"] + i.values["FunctionName"]; function != "PaymentsFunction" || guards && i.values["service"] != "payments" {
				t.Errorf("%s has the dimensions %v", name, i.values)
			}
		}
	}
	if len(doc.Resources) < 5 {
		t.Errorf("the set has %d alarms", len(doc.Resources))
	}
}

// The alarm on several functions in docs/metrics.md adds up the metric that the template's alarm
// of the same name reads, and has the same threshold.
func TestO1_TheAlarmOnSeveralFunctionsIsTheTemplates(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### Several functions\n")
	_, snippet, shown := strings.Cut(section, "```yaml\n")
	snippet, _, closed := strings.Cut(snippet, "```")
	if !found || !shown || !closed {
		t.Fatal("docs/metrics.md has no alarm on several functions")
	}
	var alarms map[string]resource
	if err := yaml.Unmarshal([]byte(snippet), &alarms); err != nil {
		t.Fatal(err)
	}
	there, deployed := everythingCounted(t), deployedResources(t)
	for name, r := range alarms {
		if got, want := thresholdRow(t, name, r), thresholdRow(t, name, deployed[name]); got != want {
			t.Errorf("the page's alarm is\n%s\nthe template's is\n%s", got, want)
		}
		in, expression := inputs(t, name, r)
		functions := map[string]bool{}
		for _, i := range in {
			functions[i.values["function"]] = true
			if !there[i.counted] {
				t.Errorf("%s is on %+v, which nobody writes", name, i.counted)
			}
		}
		if expression != "SUM(METRICS())" || len(functions) != len(in) || len(in) < 2 {
			t.Errorf("%s is %s of the functions %v", name, expression, functions)
		}
	}
	if len(alarms) != 1 {
		t.Errorf("the page has %d alarms on several functions", len(alarms))
	}
}
