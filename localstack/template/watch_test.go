package template_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// nesting returns the test template that nests watch.yaml, and watch.yaml itself.
func nesting(t *testing.T) (parent, watch document) {
	t.Helper()
	parent, err := readDocument("watch/testdata/template.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err = readDocument("watch.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	return parent, watch
}

// watch.yaml requires two parameters: the topic and the table. The test template passes both, and
// its table has the properties that the store needs.
func TestD2_TheWatchNeedsTwoParameters(t *testing.T) {
	parent, watch := nesting(t)
	var required []string
	for name, p := range watch.Parameters {
		if at(p, "Default") == nil {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	given, _ := at(parent.Resources["Watch"].Properties, "Parameters").(map[string]any)
	if want := map[string]any{"AlarmTopicArn": "AlarmTopic", "IdempotencyTable": "IdempotencyTable"}; !slices.Equal(required, slices.Sorted(maps.Keys(want))) || !cmp.Equal(given, want) {
		t.Errorf("watch.yaml requires %v, and is given %v", required, given)
	}
	if location := at(parent.Resources["Watch"].Properties, "Location"); location != "watch.yaml" {
		t.Errorf("the template nests %v", location)
	}
	if diff := cmp.Diff(keyed(deployedResources(t)["IdempotencyTable"]), keyed(parent.Resources["IdempotencyTable"])); diff != "" {
		t.Errorf("the table of template.yaml, and the template's (-want +got):\n%s", diff)
	}
	index := at(deployedResources(t)["IdempotencyTable"].Properties, "GlobalSecondaryIndexes", 0, "IndexName")
	if at(watch.Parameters["LeaseIndex"], "Default") != index {
		t.Errorf("the default index is %v, the table has %v", watch.Parameters["LeaseIndex"], index)
	}
}

// keyed returns the properties of a table that a store depends on.
func keyed(table resource) map[string]any {
	all := map[string]any{"DeletionPolicy": table.DeletionPolicy, "UpdateReplacePolicy": table.UpdateReplacePolicy}
	for _, name := range []string{"BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "TimeToLiveSpecification", "PointInTimeRecoverySpecification"} {
		all[name] = table.Properties[name]
	}
	return all
}

// A local run of a template that nests watch.yaml reads the template's table and ignores the
// nested function.
func TestD1_ATemplateThatNestsTheWatchRuns(t *testing.T) {
	got, err := template.Read(filepath.Join("..", "..", "watch", "testdata", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tables) != 1 || len(got.Functions) != 0 {
		t.Errorf("it has %d tables and %d functions", len(got.Tables), len(got.Functions))
	}
}

// The alarms of watch.yaml equal those of template.yaml on its own watch, and each of them
// notifies the topic.
func TestO2_TheNestedWatchsAlarmsAreTheSamples(t *testing.T) {
	_, watch := nesting(t)
	// same replaces the expressions of watch.yaml by those that template.yaml has in the same
	// places.
	same := strings.NewReplacer("[HasService Service WatchFunction]", "AWS::StackName", ":LeaseIndex ", ":leases ", "https://github.com/lambdaidem/toolkit/blob/main/", "")
	want, got := map[string]string{}, map[string]string{}
	for name, r := range deployedResources(t) {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		in, _ := inputs(t, name, r)
		if in[0].values["function"] == "WatchFunction" || in[0].values["GlobalSecondaryIndexName"] != "" {
			want[name] = fmt.Sprintln(thresholdRow(t, name, r), in, r.Properties["AlarmDescription"])
		}
	}
	for name, r := range watch.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		in, _ := inputs(t, name, r)
		got[name] = same.Replace(fmt.Sprintln(thresholdRow(t, name, r), in, r.Properties["AlarmDescription"]))
		if topic := []any{"AlarmTopicArn"}; !cmp.Equal(r.Properties["AlarmActions"], any(topic)) || !cmp.Equal(r.Properties["OKActions"], any(topic)) {
			t.Errorf("%s notifies %v and %v", name, r.Properties["AlarmActions"], r.Properties["OKActions"])
		}
		if n := len(fmt.Sprint(r.Properties["AlarmDescription"])); n > 1024 {
			t.Errorf("%s: its description has %d bytes; CloudWatch allows 1024", name, n)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 6 {
		t.Errorf("the alarms of template.yaml, and %d of watch.yaml (-want +got):\n%s", len(got), diff)
	}
}

// The role in watch.yaml allows the same actions as the role of the watch in template.yaml, on
// the table and index of the parameters.
func TestS1_TheNestedWatchMayDoWhatTheSampleMay(t *testing.T) {
	_, watch := nesting(t)
	table := "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${IdempotencyTable}"
	same := strings.NewReplacer(table+"/index/${LeaseIndex}", "${IdempotencyTable.Arn}/index/leases", table, "IdempotencyTable.Arn")
	got := at(watch.Resources["WatchRole"].Properties, "Policies")
	if want := fmt.Sprint(at(deployedResources(t)["WatchRole"].Properties, "Policies")); same.Replace(fmt.Sprint(got)) != want {
		t.Errorf("watch.yaml allows\n%v\ntemplate.yaml\n%s", got, want)
	}
	if trust, want := at(watch.Resources["WatchRole"].Properties, "AssumeRolePolicyDocument"), at(deployedResources(t)["WatchRole"].Properties, "AssumeRolePolicyDocument"); !cmp.Equal(trust, want) {
		t.Errorf("the role trusts %v", trust)
	}
}

// The function in watch.yaml has the same settings as the watch in template.yaml, and sets the
// variables that watch.Main reads.
func TestO2_TheNestedWatchRunsAsTheSampleDoes(t *testing.T) {
	_, watch := nesting(t)
	nested, sample := watch.Resources["WatchFunction"].Properties, deployedResources(t)["WatchFunction"].Properties
	for _, path := range [][]any{{"Timeout"}, {"Events"}, {"Description"}, {"Role"}} {
		if got, want := at(nested, path...), at(sample, path...); !cmp.Equal(got, want) {
			t.Errorf("%v is %v, template.yaml's %v", path, got, want)
		}
	}
	shared := globals(t)
	logging := maps.Clone(shared.LoggingConfig)
	logging["LogGroup"] = "WatchLogs"
	if diff := cmp.Diff(logging, at(nested, "LoggingConfig")); diff != "" {
		t.Errorf("the logs (-want +got):\n%s", diff)
	}
	variables, _ := at(nested, "Environment", "Variables").(map[string]any)
	source, err := os.ReadFile(filepath.Join("..", "..", "watch", "environment.go"))
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, m := range regexp.MustCompile(`(?m)^\t\w+Variable += "(\w+)"$`).FindAllSubmatch(source, -1) {
		read = append(read, string(m[1]))
	}
	slices.Sort(read)
	if got := slices.Sorted(maps.Keys(variables)); !slices.Equal(got, read) || len(read) == 0 {
		t.Errorf("watch.yaml sets %v, watch.Main reads %v", got, read)
	}
}
