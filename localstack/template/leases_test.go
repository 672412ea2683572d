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

// projects is the project's own template, read for a local run.
func projects(t *testing.T) *template.Template {
	t.Helper()
	got, err := template.Read(filepath.Join("..", "..", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// O2: the table that deploys is the one that the store wants, index and all.
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

// S1: only the watch may ask the index, and it may write nothing.
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
		"IdempotencyTable.Arn: dynamodb:GetItem",
		"WatchLogs.Arn: logs:CreateLogStream logs:PutLogEvents",
	}}
	if diff := cmp.Diff(want, asking); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if role := deployedResources(t)["WatchFunction"].Properties["Role"]; role != "WatchRole.Arn" {
		t.Errorf("WatchFunction has the role %v", role)
	}
}

// O2: what is guarded has metrics of its own: each guarded route of the API, and the
// operations that functions name.
func TestO2_EveryGuardedRouteIsWatched(t *testing.T) {
	all := projects(t)
	var want []string
	for _, f := range all.Functions {
		for _, r := range f.Routes {
			if r.Method == "POST" || r.Method == "PATCH" { // K4
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

// O2: the alarm is on what the watch writes, as often as it writes it, and takes
// silence for a bad sign. It says what to do.
func TestO2_DeadLeasesAlarmIsOnWhatTheWatchWrites(t *testing.T) {
	all := deployedResources(t)
	p := all["DeadLeasesAlarm"].Properties
	var l strings.Builder
	emf.New(func(o *emf.Options) {
		o.Service, o.Function, o.Writer = fmt.Sprint(at(p, "Dimensions", 0, "Value")), "WatchFunction", &l
	}).DeadLeases(emf.DeadLeases{}, nil)
	for _, want := range []string{
		`"Namespace":"` + fmt.Sprint(p["Namespace"]) + `"`, `{"Name":"` + fmt.Sprint(p["MetricName"]) + `"`,
		fmt.Sprintf(`"Dimensions":[[%q,%q]]`, at(p, "Dimensions", 0, "Name"), at(p, "Dimensions", 1, "Name")),
		fmt.Sprintf(`"function":%q`, at(p, "Dimensions", 1, "Value")),
	} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("the document has no %s: %s", want, l.String())
		}
	}
	if service := at(p, "Dimensions", 0, "Value"); service != "AWS::StackName" {
		t.Errorf("the alarm's service is %v; the functions' is the stack's name", service)
	}
	schedule := fmt.Sprint(at(all["WatchFunction"].Properties, "Events", "Schedule", "Properties", "Schedule"))
	if schedule != "rate(5 minutes)" || fmt.Sprint(p["Period"]) != "300" || p["Statistic"] != "Maximum" || p["TreatMissingData"] != "breaching" {
		t.Errorf("the watch looks at %s, the alarm takes the %s of %v s, missing data as %s", schedule, p["Statistic"], p["Period"], p["TreatMissingData"])
	}
	for _, word := range []string{"settle", "release", "held", "WatchFunction"} {
		if !strings.Contains(fmt.Sprint(p["AlarmDescription"]), word) {
			t.Errorf("the alarm's description does not say %q", word)
		}
	}
}

// D1: a schedule is not run here; whoever starts the stack is told so, by name.
func TestD1_ASchedulesEventIsNamed(t *testing.T) {
	if diff := cmp.Diff([]string{"Schedule (Schedule)"}, projects(t).Function("WatchFunction").OtherEvents); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
