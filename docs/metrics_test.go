package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

const metricsPage = "docs/metrics.md"

func TestMetrics_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, metricsPage) }

func TestMetrics_NamesEveryOption(t *testing.T) {
	namesEveryField(t, metricsPage, "emf.Options", emf.Options{})
}

// rowsOf returns the first two cells of each row of the table whose header begins with the cell
// header, without backquotes.
func rowsOf(t *testing.T, header string) [][2]string {
	t.Helper()
	page := read(t, metricsPage)
	var rows [][2]string
	_, table, _ := strings.Cut(page, "\n| "+header+" | ")
	for _, cell := range firstColumn(page, header) {
		_, rest, _ := strings.Cut(table, "\n| "+cell+" | ")
		unit, _, _ := strings.Cut(rest, " |")
		rows = append(rows, [2]string{strings.Trim(cell, "`"), strings.Trim(unit, "`")})
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table of %s", metricsPage, header)
	}
	return rows
}

// The page lists exactly the CloudWatch metrics of the code, with their units and in the same
// order.
func TestMetrics_TableIsTheCodes(t *testing.T) {
	var want [][2]string
	for _, m := range emf.Metrics() {
		want = append(want, [2]string{m.Name, string(m.Unit)})
	}
	if got := rowsOf(t, "metric"); !slices.Equal(got, want) {
		t.Errorf("%s has the metrics\n%v\nthe code has\n%v", metricsPage, got, want)
	}
}

// The page lists exactly the OpenTelemetry instruments of the code, with their units. The package
// comment has the same units.
func TestMetrics_InstrumentsAreTheCodes(t *testing.T) {
	source, comment := read(t, "lambdaidem/otelobserver/observer.go"), read(t, "lambdaidem/otelobserver/doc.go")
	rows := rowsOf(t, "instrument")
	for _, m := range regexp.MustCompile(`(?:counter|seconds|Histogram)\("(lambdaidem\.[a-z.]+)"`).FindAllStringSubmatch(source, -1) {
		i := slices.IndexFunc(rows, func(row [2]string) bool { return row[0] == m[1] })
		if i < 0 {
			t.Errorf("%s has no row for %s", metricsPage, m[1])
			continue
		}
		unit := regexp.QuoteMeta(rows[i][1])
		inSource := regexp.MustCompile(`(?:seconds\("` + regexp.QuoteMeta(m[1]) + `"|"` + regexp.QuoteMeta(m[1]) + `".*"` + unit + `")`)
		if !inSource.MatchString(source) || strings.Contains(source, `seconds("`+m[1]) != (rows[i][1] == "s") {
			t.Errorf("%s has the unit %s in %s", m[1], rows[i][1], metricsPage)
		}
		if !regexp.MustCompile(`//\t` + regexp.QuoteMeta(m[1]) + ` +` + unit + ` `).MatchString(comment) {
			t.Errorf("the package comment of otelobserver does not have %s with the unit %s", m[1], rows[i][1])
		}
		rows = slices.Delete(rows, i, i+1)
	}
	if len(rows) > 0 {
		t.Errorf("%s has rows %v, which are no instruments", metricsPage, rows)
	}
}

// The events that have durations and attempts are those that the page names.
func TestMetrics_SaysWhatIsMeasured(t *testing.T) {
	var l strings.Builder
	o := emf.New(func(o *emf.Options) { o.Writer = &l })
	page := read(t, metricsPage)
	for metric, e := range map[string]lambdaidem.Event{"Duration": {Duration: 1e6}, "Attempt": {Attempt: 1}} {
		_, row, _ := strings.Cut(page, "\n| `"+metric+"` |")
		row, _, _ = strings.Cut(row, "\n")
		for _, m := range emf.Metrics() {
			if m.Kind == "" {
				continue
			}
			l.Reset()
			e.Kind = m.Kind
			o.Observe(t.Context(), e)
			if has := strings.Contains(l.String(), `"`+metric+`"`); has != strings.Contains(row, "`"+m.Name+"`") {
				t.Errorf("the row of %s and the code don't agree on %s", metric, m.Name)
			}
		}
	}
}

// The alarm on missing metrics watches a metric that each call of DeadLeases writes, so that
// missing data means that nobody looks for dead leases.
func TestMetrics_MissingMetricsAlarmWatchesWhatALookWrites(t *testing.T) {
	_, alarm, found := strings.Cut(read(t, metricsPage), "  MetricsMissingAlarm:\n")
	alarm, _, closed := strings.Cut(alarm, "```")
	if !found || !closed {
		t.Fatal(metricsPage + " shows no alarm on missing metrics")
	}
	var l strings.Builder
	emf.New(func(o *emf.Options) { o.Writer = &l }).DeadLeases(emf.DeadLeases{}, nil)
	for _, line := range []string{"Namespace: Lambdaidem", "MetricName: DeadLeases", "- Name: service", "- Name: function", "Statistic: SampleCount", "TreatMissingData: breaching"} {
		if !strings.Contains(alarm, " "+line+"\n") {
			t.Errorf("the alarm has no %s", line)
		}
	}
	for _, part := range []string{`"Namespace":"Lambdaidem"`, `"Name":"DeadLeases"`, `"Dimensions":[["service","function"]]`, `"DeadLeases":0`} {
		if !strings.Contains(l.String(), part) {
			t.Errorf("the document has no %s: %s", part, l.String())
		}
	}
}
