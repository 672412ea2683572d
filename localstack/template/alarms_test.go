package template_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// input is a metric that an alarm reads, with the statistic and the period.
type input struct {
	counted
	id, stat, period string
	values           map[string]string // values of the dimensions, by their names
}

// inputs returns the metrics that an alarm reads, and its expression, or "" for an alarm on a
// single metric without an expression.
func inputs(t *testing.T, name string, r resource) (all []input, expression string) {
	t.Helper()
	p := r.Properties
	if p["MetricName"] != nil {
		return []input{newInput(p, "", p["Statistic"], p["Period"])}, ""
	}
	watched := 0
	list, _ := p["Metrics"].([]any)
	for _, m := range list {
		if at(m, "ReturnData") == true {
			watched++
		}
		if stat := at(m, "MetricStat"); stat != nil {
			all = append(all, newInput(at(stat, "Metric"), fmt.Sprint(at(m, "Id")), at(stat, "Stat"), at(stat, "Period")))
			continue
		}
		expression = fmt.Sprint(at(m, "Expression"))
	}
	if watched != 1 || expression == "" || len(all) != len(list)-1 {
		t.Errorf("%s watches %d of %v; want one expression", name, watched, list)
	}
	return all, expression
}

func newInput(metric any, id string, stat, period any) input {
	in := input{id: id, stat: fmt.Sprint(stat), period: fmt.Sprint(period), values: map[string]string{}}
	dimensions, _ := at(metric, "Dimensions").([]any)
	for _, d := range dimensions {
		in.values[fmt.Sprint(at(d, "Name"))] = fmt.Sprint(at(d, "Value"))
	}
	in.counted = newCounted(fmt.Sprint(at(metric, "Namespace")), fmt.Sprint(at(metric, "MetricName")), slices.Collect(maps.Keys(in.values))...)
	return in
}

// counting returns the alarms on metrics that guards write, by their logical IDs.
func counting(t *testing.T) map[string]resource {
	t.Helper()
	all := map[string]resource{}
	for name, r := range deployedResources(t) {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		in, _ := inputs(t, name, r)
		ofGuards := func(i input) bool {
			return !strings.HasPrefix(i.namespace, "AWS/") && i.values["function"] != "WatchFunction"
		}
		if slices.ContainsFunc(in, ofGuards) {
			all[name] = r
		}
	}
	if len(all) == 0 {
		t.Fatal("no alarm is on what guards count")
	}
	return all
}

// service returns the value of SERVICE_NAME in the functions' environment, as the template writes
// it.
func service(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(at(globals(t).Environment, "Variables", "SERVICE_NAME"))
}

// An alarm on a metric that nobody writes, or with dimensions that the metric does not have,
// never rings.
func TestO1_AlarmsAreOnWhatIsCounted(t *testing.T) {
	there := everythingCounted(t)
	for name, r := range counting(t) {
		in, _ := inputs(t, name, r)
		for _, i := range in {
			if !there[i.counted] {
				t.Errorf("%s is on %+v, which nobody writes", name, i.counted)
				continue
			}
			if want := map[emf.Unit]string{emf.Count: "Sum", emf.None: "Maximum"}[unitOf(i.name)]; i.stat != want && (i.name != "Duration" || i.stat != "SampleCount") {
				t.Errorf("%s: the %s of %s", name, i.stat, i.name)
			}
			if i.values["service"] != service(t) || i.period != in[0].period {
				t.Errorf("%s: %+v; the functions' service is %s, and one alarm has one period", name, i, service(t))
			}
		}
		if len(in) > 10 {
			t.Errorf("%s is on %d metrics; CloudWatch lets an alarm have 10 (Amazon CloudWatch, alarm limits)", name, len(in))
		}
	}
}

// Each alarm covers every guarded function: those with routes and those with event sources.
// Alarms about clients cover only functions with routes. A function that only a schedule starts
// has no guard.
func TestO1_AlarmsAreOnEveryFunction(t *testing.T) {
	read, err := template.Read(filepath.Join("..", "..", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range counting(t) {
		want := map[string]bool{}
		for _, f := range read.Functions {
			ofClients := name == "DuplicatesAlarm" || name == "CallersUnknownAlarm"
			if len(f.Routes) > 0 || len(f.Sources) > 0 && !ofClients {
				want[f.LogicalID] = true
			}
		}
		got := map[string]map[string]bool{}
		in, _ := inputs(t, name, r)
		for _, i := range in {
			if got[i.name] == nil {
				got[i.name] = map[string]bool{}
			}
			if function := i.values["function"]; got[i.name][function] {
				t.Errorf("%s has %s of %s twice", name, i.name, function)
			} else {
				got[i.name][function] = true
			}
		}
		for metric, functions := range got {
			if diff := cmp.Diff(want, functions); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, metric, diff)
			}
		}
	}
}

// The expression of an alarm reads each of its metrics. METRICS() stands for all of them, and
// METRICS("a") for those whose Id contains "a".
func TestO1_ExpressionsReadWhatTheyName(t *testing.T) {
	call := regexp.MustCompile(`METRICS\((?:"(\w+)")?\)`)
	valid := regexp.MustCompile(`^[a-z][A-Za-z0-9_]*$`)
	for name, r := range counting(t) {
		in, expression := inputs(t, name, r)
		seen, read := map[string]bool{}, map[string]bool{}
		for _, m := range call.FindAllStringSubmatch(expression, -1) {
			found := false
			for _, i := range in {
				if strings.Contains(i.id, m[1]) {
					found, read[i.id] = true, true
				}
			}
			if !found {
				t.Errorf("%s: %s finds nothing", name, m[0])
			}
		}
		for _, i := range in {
			if seen[i.id] || !valid.MatchString(i.id) || !read[i.id] {
				t.Errorf("%s: the Id %q is there twice, invalid, or not in %s", name, i.id, expression)
			}
			seen[i.id] = true
		}
	}
}

// The alarm's value is the percentage of duplicates among all calls, or 0 if there are fewer than
// 100 calls.
func TestO1_DuplicatesAreAShareOfCalls(t *testing.T) {
	in, expression := inputs(t, "DuplicatesAlarm", deployedResources(t)["DuplicatesAlarm"])
	if want := `IF(SUM(METRICS("calls")) >= 100, 100 * SUM(METRICS("duplicates")) / SUM(METRICS("calls")), 0)`; expression != want {
		t.Errorf("the expression is %s", expression)
	}
	for _, i := range in {
		isDuplicate := i.name == "Replayed" || i.name == "InProgress"
		if isDuplicate != strings.HasPrefix(i.id, "duplicates") || isDuplicate == strings.HasPrefix(i.id, "calls") || isDuplicate == (i.name == "Duration") {
			t.Errorf("%s is %s", i.id, i.name)
		}
	}
}

// Every outcome that is logged as a warning has an alarm.
func TestO1_EveryWarningHasAnAlarm(t *testing.T) {
	watched := map[string]bool{}
	for name, r := range counting(t) {
		in, _ := inputs(t, name, r)
		for _, i := range in {
			watched[i.name] = true
		}
	}
	for _, name := range []string{"Throttled", "ThrottledKeyRange", "Mismatch", "Attempt"} {
		if !watched[name] {
			t.Errorf("no alarm is on %s", name)
		}
	}
	for _, m := range emf.Metrics() {
		if m.Kind == "" {
			continue
		}
		var log bytes.Buffer
		warnings := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		lambdaidem.SlogObserver(warnings).Observe(t.Context(), lambdaidem.Event{Kind: m.Kind})
		if log.Len() > 0 && !watched[m.Name] {
			t.Errorf("no alarm is on %s, which is logged as %s", m.Name, &log)
		}
	}
}

// Metrics in embedded metric format arrive late, so AWS advises that an alarm needs fewer
// breaching datapoints than it has evaluation periods (Amazon CloudWatch, "Setting alarms on
// metrics created with the embedded metric format").
func TestO1_AlarmsWaitForTheLogs(t *testing.T) {
	for name, r := range counting(t) {
		periods, points := fmt.Sprint(r.Properties["EvaluationPeriods"]), fmt.Sprint(r.Properties["DatapointsToAlarm"])
		if name != "DuplicatesAlarm" && (periods != "5" || points != "1" && points != "2") {
			t.Errorf("%s: %s of %s periods", name, points, periods)
		}
	}
}

// The description of an alarm says what to do and ends with a link to the section of the runbook
// that names the alarm. It has at most 1,024 bytes (CloudWatch API Reference, PutMetricAlarm).
// The table in the runbook lists every alarm by its name.
func TestD2_AlarmsSayWhatToDo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	runbook := sections(string(text))
	pointer := regexp.MustCompile(`See docs/operate\.md#([a-z0-9-]+)\.$`)
	there := map[string]bool{}
	for name, r := range deployedResources(t) {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		there[name] = true
		description := fmt.Sprint(r.Properties["AlarmDescription"])
		if len(description) < 100 || len(description) > 1024 {
			t.Errorf("%s: its description has %d bytes", name, len(description))
		}
		named := regexp.MustCompile(`\b` + name + `\b`)
		m := pointer.FindStringSubmatch(description)
		switch {
		case m == nil:
			t.Errorf("%s: its description leads not into the runbook: %s", name, description)
		case !named.MatchString(runbook[m[1]]):
			t.Errorf("%s leads to %s, where it is not named", name, m[1])
		}
	}
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+Alarm[\w, ]*) \|`).FindAllStringSubmatch(runbook["an-alarm-rings"], -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			rows++
			if !there[name] {
				t.Errorf("the runbook's table has %s, which is no alarm, or has it twice", name)
			}
			delete(there, name)
		}
	}
	if len(there) > 0 || rows == 0 {
		t.Errorf("the runbook's table has no row of %v", there)
	}
	for _, m := range regexp.MustCompile(`(?:the query|saved quer(?:y|ies):?) "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		if _, found := queries(t)[m[1]]; !found {
			t.Errorf("the runbook names the query %q, which is not there", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`saved query "([^"]+)"`).FindAllStringSubmatch(fmt.Sprint(counting(t)), -1) {
		if _, found := queries(t)[m[1]]; !found {
			t.Errorf("an alarm names the query %q, which is not there", m[1])
		}
	}
}

// If CloudWatch refuses a function's metrics, all other alarms stay silent. So two alarms count
// refused metrics, in the logs of all functions.
func TestO1_RefusedMetricsRaiseAnAlarm(t *testing.T) {
	all := deployedResources(t)
	logs := map[string]bool{}
	for _, r := range all {
		if r.Type == "AWS::Serverless::Function" {
			logs[fmt.Sprint(at(r.Properties, "LoggingConfig", "LogGroup"))] = true
		}
	}
	for name, metric := range map[string]string{"MetricsMalformedAlarm": "EMFParsingErrors", "MetricsInvalidAlarm": "EMFValidationErrors"} {
		in, expression := inputs(t, name, all[name])
		watched := map[string]bool{}
		for _, i := range in {
			if i.counted != newCounted("AWS/Logs", metric, "LogGroupName") || i.stat != "Sum" {
				t.Errorf("%s is on the %s of %+v", name, i.stat, i.counted)
			}
			watched[i.values["LogGroupName"]] = true
		}
		if diff := cmp.Diff(logs, watched); diff != "" || len(in) > 10 || expression != "SUM(METRICS())" {
			t.Errorf("%s: %s of %d metrics, of the logs (-want +got):\n%s", name, expression, len(in), diff)
		}
	}
}

// sections returns the text of each section of a Markdown page. The keys are the anchors of the
// headings in links.
func sections(page string) map[string]string {
	all, name := map[string]string{}, ""
	for line := range strings.Lines(page) {
		if text, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); found && line[0] == '#' {
			text = regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
			name = strings.ReplaceAll(text, " ", "-")
		}
		all[name] += line
	}
	return all
}
