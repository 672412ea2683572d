package template_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// projects returns the project's own template, read for a local run.
func projects(t *testing.T) *template.Template {
	t.Helper()
	got, err := template.Read(filepath.Join("..", "..", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The table in template.yaml passes the store's check, including the index of leases.
func TestO2_TheDeployedTableHasTheIndexOfLeases(t *testing.T) {
	server := ddblocal.ForTest(t)
	t.Cleanup(server.CloseIdleConnections)
	all := projects(t)
	i := slices.IndexFunc(all.Tables, func(table template.Table) bool { return table.LogicalID == "IdempotencyTable" })
	table := all.Tables[i]
	table.Name = fmt.Sprint("leases-", time.Now().UnixNano())
	client := server.Client()
	if err := template.CreateTables(t.Context(), client, []template.Table{table}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table.Name}); err != nil {
			t.Error(err)
		}
	})
	index := all.Function("WatchFunction").Environment["IDEMPOTENCY_LEASE_INDEX"]
	store := dynamostore.New(client, table.Name, func(o *dynamostore.Options) { o.LeaseIndex, o.AttemptTimeout = index, time.Minute })
	if err := store.CheckTable(t.Context()); err != nil || index == "" {
		t.Errorf("of the index %q: %v", index, err)
	}
	for _, f := range all.Functions {
		if f.Environment["IDEMPOTENCY_LEASE_INDEX"] != index {
			t.Errorf("%s writes another index than is watched", f.LogicalID)
		}
	}
}

// Only the watch may query the index, and it may not write to the table.
func TestS1_OnlyTheWatchMayAskTheIndex(t *testing.T) {
	asking := map[string][]string{}
	for name, r := range deployedResources(t) {
		policies, _ := r.Properties["Policies"].([]any)
		for _, policy := range policies {
			statements, _ := at(policy, "PolicyDocument", "Statement").([]any)
			for _, s := range statements {
				what := fmt.Sprint(at(s, "Resource")) + ": " + strings.Join(texts(at(s, "Action")), " ")
				if strings.Contains(what, "Query") || strings.Contains(what, "index") || name == "WatchRole" {
					asking[name] = append(asking[name], what)
				}
			}
		}
	}
	want := map[string][]string{"WatchRole": {
		"${IdempotencyTable.Arn}/index/leases: dynamodb:Query",
		"IdempotencyTable.Arn: dynamodb:DescribeTimeToLive dynamodb:GetItem",
		"WatchLogs.Arn: logs:CreateLogStream logs:PutLogEvents",
	}}
	if diff := cmp.Diff(want, asking); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if role := deployedResources(t)["WatchFunction"].Properties["Role"]; role != "WatchRole.Arn" {
		t.Errorf("WatchFunction has the role %v", role)
	}
}

// The watch writes separate metrics for each guarded route of the API and for each operation that
// a function names.
func TestO2_EveryGuardedRouteIsWatched(t *testing.T) {
	all := projects(t)
	var want []string
	for _, f := range all.Functions {
		for _, r := range f.Routes {
			if r.Method == "POST" || r.Method == "PATCH" { // the guard's default methods
				want = append(want, r.Key())
			}
		}
	}
	sources, err := filepath.Glob(filepath.Join("..", "..", "functions", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`o\.Operation = "([^"]+)"`).FindAllSubmatch(text, -1) {
			want = append(want, string(m[1]))
		}
	}
	got := strings.Split(all.Function("WatchFunction").Environment["WATCHED_ROUTES"], ",")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 5 {
		t.Errorf("guarded - watched +:\n%s", diff)
	}
}

// The alarms read metrics that the watch writes, with a period equal to the watch's schedule.
// Dead leases and held records have separate alarms. Missing data raises the alarm where it could
// hide a failure.
func TestO2_TheWatchsAlarmsAreOnWhatItWrites(t *testing.T) {
	all := deployedResources(t)
	var l strings.Builder
	o := emf.New(func(o *emf.Options) { o.Service, o.Function, o.Writer = "AWS::StackName", "WatchFunction", &l })
	o.DeadLeases(emf.DeadLeases{}, nil)
	o.TTL(true)
	for name, want := range map[string]struct{ metric, statistic, missing string }{
		"DeadLeasesAlarm":     {"RecentDeadLeases", "Maximum", "notBreaching"},
		"HeldRecordsAlarm":    {"HeldRecords", "Maximum", "notBreaching"},
		"HeldTooLongAlarm":    {"OldestHeldRecord", "Maximum", "notBreaching"},
		"MetricsMissingAlarm": {"DeadLeases", "SampleCount", "breaching"},
		"TTLDisabledAlarm":    {"TTLDisabled", "Maximum", "breaching"},
	} {
		p := all[name].Properties
		got := struct{ metric, statistic, missing string }{fmt.Sprint(p["MetricName"]), fmt.Sprint(p["Statistic"]), fmt.Sprint(p["TreatMissingData"])}
		if got != want || fmt.Sprint(p["Period"]) != "300" {
			t.Errorf("%s is on %+v each %v s, want %+v", name, got, p["Period"], want)
		}
		for _, part := range []string{
			`"Namespace":"` + fmt.Sprint(p["Namespace"]) + `"`, `{"Name":"` + want.metric + `"`,
			fmt.Sprintf(`"Dimensions":[[%q,%q]]`, at(p, "Dimensions", 0, "Name"), at(p, "Dimensions", 1, "Name")),
			fmt.Sprintf(`"service":%q,"function":%q`, at(p, "Dimensions", 0, "Value"), at(p, "Dimensions", 1, "Value")),
		} {
			if !strings.Contains(l.String(), part) {
				t.Errorf("%s: no document has %s: %s", name, part, l.String())
			}
		}
	}
	if schedule := fmt.Sprint(at(all["WatchFunction"].Properties, "Events", "Schedule", "Properties", "Schedule")); schedule != "rate(5 minutes)" {
		t.Errorf("the watch looks at %s, and its alarms have periods of 300 s", schedule)
	}
	for _, word := range []string{"settle", "release", "WatchFunction"} {
		for _, name := range []string{"DeadLeasesAlarm", "HeldRecordsAlarm"} {
			if !strings.Contains(fmt.Sprint(all[name].Properties["AlarmDescription"]), word) {
				t.Errorf("the description of %s does not say %q", name, word)
			}
		}
	}
}

// A local run does not emulate schedules, and lists them as other events.
func TestD1_ASchedulesEventIsNamed(t *testing.T) {
	if diff := cmp.Diff([]string{"Schedule (Schedule)"}, projects(t).Function("WatchFunction").OtherEvents); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
