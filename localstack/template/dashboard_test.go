package template_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// widget is a widget of a dashboard (Amazon CloudWatch, "Dashboard body structure and syntax").
type widget struct {
	Type                string
	X, Y, Width, Height int
	Properties          struct {
		Title, Region, Query string
		Alarms               []string
		Metrics              [][]any
	}
}

func dashboard(t *testing.T) []widget {
	t.Helper()
	var body struct{ Widgets []widget }
	text := fmt.Sprint(deployedResources(t)["Dashboard"].Properties["DashboardBody"])
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	if len(body.Widgets) == 0 {
		t.Fatal("the dashboard is empty")
	}
	return body.Widgets
}

// search matches a SEARCH expression in the form that this dashboard uses: for one metric of one
// service.
var search = regexp.MustCompile(`SEARCH\('\{([^,}]+),([^}]+)\} service="([^"]*)" MetricName="([^"]*)"', '(\w+)', (\d+)\)`)

// A graph of a metric that nobody writes is empty, and an empty graph looks as if all were well.
func TestO1_DashboardShowsWhatIsCounted(t *testing.T) {
	there, shown := everythingCounted(t), map[string]bool{}
	for _, w := range dashboard(t) {
		for _, m := range w.Properties.Metrics {
			if namespace, direct := m[0].(string); direct {
				if !strings.HasPrefix(namespace, "AWS/") {
					t.Errorf("%s: %v; what guards count is searched for, so that functions to come are in it", w.Properties.Title, m)
				}
				continue
			}
			expression := fmt.Sprint(at(m[0], "expression"))
			found := search.FindAllStringSubmatch(expression, -1)
			if len(found) != strings.Count(expression, "SEARCH") {
				t.Errorf("%s: %s is no search by service and metric", w.Properties.Title, expression)
			}
			for _, f := range found {
				c := newCounted(f[1], f[4], strings.Split(f[2], ",")...)
				if !there[c] || f[3] != "${"+service(t)+"}" {
					t.Errorf("%s: %+v of %s, which nobody writes", w.Properties.Title, c, f[3])
					continue
				}
				counts := unitOf(f[4]) == emf.Count
				if counts != (f[5] == "Sum") || !counts && !slices.Contains([]string{"p50", "p99", "SampleCount"}, f[5]) {
					t.Errorf("%s: the %s of %s", w.Properties.Title, f[5], f[4])
				}
				shown[f[4]] = true
			}
		}
	}
	for _, m := range emf.Metrics() {
		if m.Kind == lambdaidem.EventBypassed { // written only with an option that the functions don't set
			continue
		}
		if by := m.Kind != "" || strings.HasPrefix(m.Name, "Throttled") && m.Name != "Throttled"; by && !shown[m.Name] {
			t.Errorf("%s is nowhere to be seen", m.Name)
		}
	}
}

// An expression refers only to Ids of metrics in the same graph.
func TestO1_DashboardExpressionsReadWhatTheyName(t *testing.T) {
	name := regexp.MustCompile(`\b[a-z]\w*\b`)
	for _, w := range dashboard(t) {
		ids := map[string]bool{}
		for _, m := range w.Properties.Metrics {
			if id := at(m[0], "id"); id != nil {
				ids[fmt.Sprint(id)] = true
			}
		}
		for _, m := range w.Properties.Metrics {
			expression, ok := at(m[0], "expression").(string)
			if !ok || strings.Contains(expression, "SEARCH") {
				continue
			}
			for _, used := range name.FindAllString(expression, -1) {
				if !ids[used] {
					t.Errorf("%s: %s has no %s", w.Properties.Title, expression, used)
				}
			}
		}
	}
}

func TestD2_DashboardShowsEveryAlarm(t *testing.T) {
	want, got := map[string]bool{}, map[string]bool{}
	for name, r := range deployedResources(t) {
		if r.Type == "AWS::CloudWatch::Alarm" {
			want["${"+name+".Arn}"] = true
		}
	}
	for _, w := range dashboard(t) {
		for _, arn := range w.Properties.Alarms {
			got[arn] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Widgets are placed in a grid of 24 columns, and must not overlap.
func TestD2_DashboardWidgetsDoNotOverlap(t *testing.T) {
	taken := map[[2]int]string{}
	for _, w := range dashboard(t) {
		title := w.Properties.Title
		if w.Width < 1 || w.Height < 1 || w.X < 0 || w.X+w.Width > 24 || title == "" {
			t.Errorf("%q: %+v", title, w)
		}
		if w.Type != "alarm" && w.Properties.Region != "${AWS::Region}" {
			t.Errorf("%s has the Region %q", title, w.Properties.Region)
		}
		for x := range w.Width {
			for y := range w.Height {
				at := [2]int{w.X + x, w.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("%s lies on %s", title, other)
				}
				taken[at] = title
			}
		}
	}
}

// The table of the newest uncertain calls shows the saved query "uncertain calls", over the same
// logs.
func TestO1_DashboardTableIsTheSavedQuery(t *testing.T) {
	q := queries(t)["uncertain calls"]
	var sources []string
	for _, group := range q.groups {
		sources = append(sources, "SOURCE '${"+group+"}'")
	}
	want := strings.Join(sources, " | ") + " | " + strings.Join(strings.Fields(withoutComments(q.text)), " ")
	tables := 0
	for _, w := range dashboard(t) {
		if w.Type != "log" {
			continue
		}
		if tables++; w.Properties.Query != want {
			t.Errorf("it is\n%s\nwant\n%s", w.Properties.Query, want)
		}
	}
	if tables != 1 {
		t.Errorf("there are %d tables", tables)
	}
}

// keysOf returns the sorted keys of a map.
func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
