package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// terraform has the resources of the configuration in docs/deploy.md by their names, "type.name", or
// "type.name[key]" for a resource with for_each. Each resource is a map of its arguments, whose
// values have the types that encoding/json decodes into an any. A nested block is a list of objects.
// A reference to an attribute of a resource is a string with the text of the reference.
type terraform map[string]map[string]any

// readTerraform evaluates the configuration in docs/deploy.md. It fails the test if the configuration
// refers to a resource that is neither in the configuration nor named in the section's prose.
func readTerraform(t *testing.T) terraform {
	t.Helper()
	text := section(t, "docs/deploy.md", "## Terraform")
	file, problems := hclparse.NewParser().ParseHCL([]byte(strings.Join(codeBlocks(text, "hcl"), "")), "docs/deploy.md")
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	body := file.Body.(*hclsyntax.Body)
	declared := map[string]bool{}
	for _, block := range body.Blocks {
		declared[strings.Join(block.Labels, ".")] = true
	}
	values := map[string]cty.Value{"local": cty.EmptyObjectVal}
	for reference := range references(t, body) {
		kind, name, attribute := reference[0], reference[1], reference[2]
		if resource := kind + "." + name; !declared[resource] && !strings.Contains(text, "`"+resource+"`") {
			t.Errorf("the configuration refers to the resource %s, but does not have it, and the page does not name it either", resource)
		}
		values[kind] = with(values[kind], name, with(member(values[kind], name), attribute, cty.StringVal(strings.Join(reference[:], "."))))
	}
	scope := &hcl.EvalContext{Variables: values, Functions: map[string]function.Function{
		"jsonencode": stdlib.JSONEncodeFunc,
		"try":        tryfunc.TryFunc,
		"filebase64sha256": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "path", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0], nil },
		}),
	}}
	all := terraform{}
	for _, block := range body.Blocks {
		switch block.Type {
		case "locals":
			locals(t, scope, block.Body)
		case "resource":
			name := strings.Join(block.Labels, ".")
			if each := block.Body.Attributes["for_each"]; each != nil {
				for key, value := range evaluated(t, scope, each.Expr).AsValueMap() {
					inner := scope.NewChild()
					inner.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(key), "value": value})}
					all[name+"["+key+"]"] = arguments(t, inner, block.Body)
				}
				continue
			}
			all[name] = arguments(t, scope, block.Body)
		default:
			t.Errorf("a block %s, which this test does not know", block.Type)
		}
	}
	return all
}

// references returns the attributes of resources to which a configuration refers, each as the type
// and the name of the resource and the name of the attribute.
func references(t *testing.T, body *hclsyntax.Body) map[[3]string]bool {
	t.Helper()
	all := map[[3]string]bool{}
	for _, attribute := range body.Attributes {
		for _, path := range attribute.Expr.Variables() {
			if !strings.HasPrefix(path.RootName(), "aws_") {
				continue
			}
			if len(path) != 3 {
				t.Errorf("%v: a reference to a resource, not to an attribute", path.SourceRange())
				continue
			}
			all[[3]string{path.RootName(), path[1].(hcl.TraverseAttr).Name, path[2].(hcl.TraverseAttr).Name}] = true
		}
	}
	for _, block := range body.Blocks {
		maps.Copy(all, references(t, block.Body))
	}
	return all
}

// member returns a member of an object, or cty.NilVal if the object has no such member or is
// cty.NilVal itself.
func member(object cty.Value, name string) cty.Value {
	if object == cty.NilVal {
		return cty.NilVal
	}
	return object.AsValueMap()[name]
}

// with returns a copy of an object with one more member. If the object is cty.NilVal, the copy has
// only this member.
func with(object cty.Value, name string, value cty.Value) cty.Value {
	members := map[string]cty.Value{}
	if object != cty.NilVal {
		members = object.AsValueMap()
	}
	members[name] = value
	return cty.ObjectVal(members)
}

// locals evaluates local values and adds them to the scope. A local value may refer to others, so
// locals repeats its attempts to evaluate those that are left.
func locals(t *testing.T, scope *hcl.EvalContext, body *hclsyntax.Body) {
	t.Helper()
	known := map[string]cty.Value{}
	for len(known) < len(body.Attributes) {
		before := len(known)
		for name, attribute := range body.Attributes {
			if _, done := known[name]; done {
				continue
			}
			if value, problems := attribute.Expr.Value(scope); !problems.HasErrors() {
				known[name] = value
				scope.Variables["local"] = cty.ObjectVal(known)
			}
		}
		if len(known) == before {
			t.Fatalf("the locals can't be evaluated beyond %v", slices.Sorted(maps.Keys(known)))
		}
	}
}

func evaluated(t *testing.T, scope *hcl.EvalContext, expression hcl.Expression) cty.Value {
	t.Helper()
	value, problems := expression.Value(scope)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return value
}

// arguments evaluates the body of a resource, or of a block in a resource.
func arguments(t *testing.T, scope *hcl.EvalContext, body *hclsyntax.Body) map[string]any {
	t.Helper()
	all := map[string]any{}
	for name, attribute := range body.Attributes {
		if name == "for_each" {
			continue
		}
		value := evaluated(t, scope, attribute.Expr)
		text, err := ctyjson.Marshal(value, value.Type())
		if err != nil {
			t.Fatal(err)
		}
		all[name] = fromJSON(t, string(text))
	}
	for _, block := range body.Blocks {
		list, _ := all[block.Type].([]any)
		all[block.Type] = append(list, arguments(t, scope, block.Body))
	}
	return all
}

func fromJSON(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// sample returns the global properties of functions in template.yaml, and the resources of
// template.yaml and monitoring.yaml. The YAML parser drops the tags of intrinsic functions: the value
// of !Ref Table is the text Table.
func sample(t *testing.T) (globals any, resources map[string]any) {
	t.Helper()
	resources = map[string]any{}
	for _, name := range []string{"monitoring.yaml", "template.yaml"} {
		doc := fromYAML(t, read(t, name))
		all, _ := at(doc, "Resources").(map[string]any)
		maps.Copy(resources, all)
		globals = at(doc, "Globals", "Function")
	}
	return globals, resources
}

// The table has the key, index, TTL, billing and backups of template.yaml's, and prevent_destroy.
func TestTerraform_TheTableIsTheSamples(t *testing.T) {
	got := readTerraform(t)["aws_dynamodb_table.idempotency"]
	_, resources := sample(t)
	table := at(resources["IdempotencyTable"], "Properties")
	attributes := map[any]any{}
	for _, a := range list(at(table, "AttributeDefinitions")) {
		attributes[at(a, "AttributeName")] = at(a, "AttributeType")
	}
	declared := map[any]any{}
	for _, a := range list(got["attribute"]) {
		declared[at(a, "name")] = at(a, "type")
	}
	index := at(table, "GlobalSecondaryIndexes", 0)
	want := map[string]any{
		"name": "idempotency", "billing_mode": at(table, "BillingMode"), "hash_key": at(table, "KeySchema", 0, "AttributeName"), "attribute": got["attribute"],
		"global_secondary_index": []any{map[string]any{
			"name": at(index, "IndexName"), "hash_key": at(index, "KeySchema", 0, "AttributeName"), "range_key": at(index, "KeySchema", 1, "AttributeName"),
			"projection_type": at(index, "Projection", "ProjectionType"),
		}},
		"ttl":                    []any{map[string]any{"attribute_name": at(table, "TimeToLiveSpecification", "AttributeName"), "enabled": at(table, "TimeToLiveSpecification", "Enabled")}},
		"point_in_time_recovery": []any{map[string]any{"enabled": at(table, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")}},
		"lifecycle":              []any{map[string]any{"prevent_destroy": true}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !cmp.Equal(attributes, declared) {
		t.Errorf("attributes %v, want %v; the table (-want +got):\n%s", declared, attributes, diff)
	}
}

// statements returns a text for each statement of a policy: the effect, the sorted actions and the
// resource.
func statements(policy any) []string {
	var all []string
	for _, s := range list(at(policy, "Statement")) {
		var actions []string
		for _, a := range list(at(s, "Action")) {
			actions = append(actions, fmt.Sprint(a))
		}
		slices.Sort(actions)
		all = append(all, fmt.Sprint(at(s, "Effect"), " ", strings.Join(actions, " "), " on ", at(s, "Resource")))
	}
	return all
}

// A function and the watch have the same permissions as in template.yaml.
func TestTerraform_ThePoliciesAreTheSamples(t *testing.T) {
	all := readTerraform(t)
	_, resources := sample(t)
	// The names of resources in Terraform, each followed by the name in SAM. In CloudFormation the ARN of a log
	// group has ":*" at its end; in Terraform it has not.
	same := strings.NewReplacer("aws_dynamodb_table.idempotency.arn/index", "${IdempotencyTable.Arn}/index", "aws_dynamodb_table.idempotency.arn", "IdempotencyTable.Arn", "aws_cloudwatch_log_group.watch.arn:*", "WatchLogs.Arn")
	for resource, role := range map[string]string{"aws_iam_role_policy.idempotency": "PaymentsRole", "aws_iam_role_policy.watch": "WatchRole"} {
		var want []string
		for _, policy := range list(at(resources[role], "Properties", "Policies")) {
			if role == "WatchRole" || at(policy, "PolicyName") == "idempotency-records" {
				want = append(want, statements(at(policy, "PolicyDocument"))...)
			}
		}
		var got []string
		for _, s := range statements(fromJSON(t, fmt.Sprint(all[resource]["policy"]))) {
			got = append(got, same.Replace(s))
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s (-want +got):\n%s", resource, diff)
		}
	}
	trust := fromJSON(t, fmt.Sprint(all["aws_iam_role.watch"]["assume_role_policy"]))
	if got, want := at(trust, "Statement", 0), at(resources["WatchRole"], "Properties", "AssumeRolePolicyDocument", "Statement", 0); !cmp.Equal(got, want) {
		t.Errorf("the watch's role trusts %v, want %v", got, want)
	}
}

// The event source mappings have the batch sizes, the reports of failures and the limits of retries of
// template.yaml's.
func TestTerraform_TheMappingsAreTheSamples(t *testing.T) {
	all := readTerraform(t)
	_, resources := sample(t)
	queue := at(resources["NotificationsFunction"], "Properties", "Events", "Notification", "Properties")
	stream := at(resources["ReceiptsFunction"], "Properties", "Events", "NewPayment", "Properties")
	for name, want := range map[string]map[string]any{
		"notifications": {"event_source_arn": "aws_sqs_queue.notifications.arn", "batch_size": number(at(queue, "BatchSize")), "function_response_types": at(queue, "FunctionResponseTypes")},
		"receipts": {
			"event_source_arn": "aws_dynamodb_table.payments.stream_arn", "batch_size": number(at(stream, "BatchSize")), "function_response_types": at(stream, "FunctionResponseTypes"),
			"starting_position": at(stream, "StartingPosition"), "bisect_batch_on_function_error": at(stream, "BisectBatchOnFunctionError"),
			"maximum_retry_attempts": number(at(stream, "MaximumRetryAttempts")), "maximum_record_age_in_seconds": number(at(stream, "MaximumRecordAgeInSeconds")),
			"destination_config": []any{map[string]any{"on_failure": []any{map[string]any{"destination_arn": "aws_sqs_queue.receipts_dead.arn"}}}},
		},
	} {
		want["function_name"] = "aws_lambda_function." + name + ".arn"
		if diff := cmp.Diff(want, all["aws_lambda_event_source_mapping."+name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The watch has the configuration, the environment variables and the schedule of template.yaml's.
func TestTerraform_TheWatchIsTheSamples(t *testing.T) {
	all := readTerraform(t)
	globals, resources := sample(t)
	function, got := at(resources["WatchFunction"], "Properties"), all["aws_lambda_function.watch"]
	for argument, want := range map[string]any{
		"handler": at(globals, "Handler"), "runtime": at(globals, "Runtime"), "architectures": at(globals, "Architectures"),
		"memory_size": number(at(globals, "MemorySize")), "timeout": number(at(function, "Timeout")), "role": "aws_iam_role.watch.arn",
		"logging_config": []any{map[string]any{
			"log_format": at(globals, "LoggingConfig", "LogFormat"), "application_log_level": at(globals, "LoggingConfig", "ApplicationLogLevel"), "log_group": "aws_cloudwatch_log_group.watch.name",
		}},
	} {
		if !cmp.Equal(got[argument], want) {
			t.Errorf("%s is %v, want %v", argument, got[argument], want)
		}
	}
	variables, _ := at(got, "environment", 0, "variables").(map[string]any)
	names, _ := at(globals, "Environment", "Variables").(map[string]any)
	names = maps.Clone(names)
	maps.Copy(names, at(function, "Environment", "Variables").(map[string]any))
	delete(names, "ACCOUNTS_TABLE") // the watch does not read it
	if !slices.Equal(slices.Sorted(maps.Keys(variables)), slices.Sorted(maps.Keys(names))) {
		t.Errorf("the variables are %v, template.yaml's %v", variables, names)
	}
	index := at(all["aws_dynamodb_table.idempotency"], "global_secondary_index", 0, "name")
	if variables["IDEMPOTENCY_LEASE_INDEX"] != index || variables["IDEMPOTENCY_TABLE"] != "aws_dynamodb_table.idempotency.name" {
		t.Errorf("the watch looks at %v", variables)
	}
	rule, target, permission := all["aws_cloudwatch_event_rule.watch"], all["aws_cloudwatch_event_target.watch"], all["aws_lambda_permission.watch"]
	if want := at(function, "Events", "Schedule", "Properties", "Schedule"); rule["schedule_expression"] != want || target["arn"] != "aws_lambda_function.watch.arn" || target["rule"] != "aws_cloudwatch_event_rule.watch.name" {
		t.Errorf("the schedule is %v, and starts %v; want %v", rule, target, want)
	}
	if want := map[string]any{"action": "lambda:InvokeFunction", "function_name": "aws_lambda_function.watch.function_name", "principal": "events.amazonaws.com", "source_arn": "aws_cloudwatch_event_rule.watch.arn"}; !cmp.Equal(permission, want) {
		t.Errorf("the permission is %v, want %v", permission, want)
	}
}

// Each alarm equals monitoring.yaml's alarm on the same metric. There are alarms on the metrics of the
// smallest set and on those of the watch.
func TestTerraform_TheAlarmsAreTheSamples(t *testing.T) {
	_, resources := sample(t)
	samples := map[string]map[string]any{}
	for _, r := range resources {
		if at(r, "Type") != "AWS::CloudWatch::Alarm" {
			continue
		}
		p := at(r, "Properties")
		add := func(metric, statistic, period any) {
			points := at(p, "DatapointsToAlarm")
			if points == nil {
				points = at(p, "EvaluationPeriods")
			}
			var dimensions []string
			for _, d := range list(at(metric, "Dimensions")) {
				dimensions = append(dimensions, fmt.Sprint(at(d, "Name")))
			}
			slices.Sort(dimensions)
			samples[fmt.Sprint(at(metric, "MetricName"))] = map[string]any{
				"namespace": at(metric, "Namespace"), "statistic": statistic, "period": number(period), "threshold": number(at(p, "Threshold")),
				"evaluation_periods": number(at(p, "EvaluationPeriods")), "datapoints_to_alarm": number(points),
				"comparison_operator": at(p, "ComparisonOperator"), "treat_missing_data": at(p, "TreatMissingData"), "dimensions": dimensions,
			}
		}
		if at(p, "MetricName") != nil {
			add(p, at(p, "Statistic"), at(p, "Period"))
		}
		for _, m := range list(at(p, "Metrics")) {
			if stat := at(m, "MetricStat"); stat != nil {
				add(at(stat, "Metric"), at(stat, "Stat"), at(stat, "Period"))
			}
		}
	}
	ofWatch := []string{"RecentDeadLeases", "HeldRecords", "OldestHeldRecord", "TTLDisabled", "DeadLeases"}
	on := map[string]bool{}
	for name, got := range readTerraform(t) {
		if !strings.HasPrefix(name, "aws_cloudwatch_metric_alarm.") {
			continue
		}
		metric := fmt.Sprint(got["metric_name"])
		on[metric] = true
		values, _ := got["dimensions"].(map[string]any)
		function := "aws_lambda_function.payments.function_name"
		if slices.Contains(ofWatch, metric) {
			function = "aws_lambda_function.watch.function_name"
		}
		if value := fmt.Sprint(values["function"], values["FunctionName"]); !strings.Contains(value, function) {
			t.Errorf("%s is of %v", name, values)
		}
		topic := []any{"aws_sns_topic.alarms.arn"}
		if !cmp.Equal(got["alarm_actions"], any(topic)) || !cmp.Equal(got["ok_actions"], any(topic)) || !strings.HasSuffix(fmt.Sprint(got["alarm_name"]), "-"+metric) {
			t.Errorf("%s is called %v and notifies %v and %v", name, got["alarm_name"], got["alarm_actions"], got["ok_actions"])
		}
		if !strings.Contains(fmt.Sprint(got["alarm_description"]), "docs/operate.md#an-alarm-rings") {
			t.Errorf("%s does not lead to the runbook: %v", name, got["alarm_description"])
		}
		got["dimensions"] = slices.Sorted(maps.Keys(values))
		for _, argument := range []string{"alarm_name", "alarm_description", "alarm_actions", "ok_actions", "metric_name"} {
			delete(got, argument)
		}
		if diff := cmp.Diff(samples[metric], got); diff != "" {
			t.Errorf("%s (-monitoring.yaml +got):\n%s", name, diff)
		}
	}
	for _, metric := range append(ofWatch, "Errors", "StoreError", "Uncertain", "Abandoned", "AnswerLost", "Unreadable") {
		if !on[metric] {
			t.Errorf("no alarm is on %s", metric)
		}
		delete(on, metric)
	}
	if len(on) > 0 {
		t.Errorf("there are alarms on %v too", on)
	}
}
