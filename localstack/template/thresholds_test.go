package template_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// thresholdRow returns the row that an alarm must have in the table of docs/metrics.md.
func thresholdRow(t *testing.T, name string, r resource) string {
	t.Helper()
	in, expression := inputs(t, name, r)
	p := r.Properties
	var metrics []string
	for _, i := range in {
		if !slices.Contains(metrics, i.name) {
			metrics = append(metrics, i.name)
		}
	}
	slices.Sort(metrics)
	what := strings.Join(metrics, "`, `")
	how := in[0].stat
	if strings.HasPrefix(expression, "IF(") {
		how = "share in percent"
	}
	operator := map[string]string{"GreaterThanOrEqualToThreshold": "≥", "LessThanThreshold": "<", "GreaterThanThreshold": ">"}[fmt.Sprint(p["ComparisonOperator"])]
	points := p["DatapointsToAlarm"]
	if points == nil {
		points = p["EvaluationPeriods"]
	}
	missing := map[string]string{"breaching": "rings", "notBreaching": "is well"}[fmt.Sprint(p["TreatMissingData"])]
	return fmt.Sprintf("| %s | `%s` | %s %s %v | %v of %v × %s s | %s |", name, what, how, operator, p["Threshold"], points, p["EvaluationPeriods"], in[0].period, missing)
}

// The table in docs/metrics.md has a row for every alarm of the template, with its threshold, and
// no other row.
func TestD2_TheTableOfThresholdsIsTheTemplates(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| alarm | metric |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, line := range strings.Split(table, "\n") {
		if strings.Contains(line, "Alarm |") {
			got = append(got, line)
		}
	}
	var want []string
	for name, r := range deployedResources(t) {
		if r.Type == "AWS::CloudWatch::Alarm" {
			want = append(want, thresholdRow(t, name, r))
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nthe template's alarms are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
