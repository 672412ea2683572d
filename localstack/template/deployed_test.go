package template_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// resource is a resource of the template, including properties that package template does not
// read. Intrinsic functions are replaced by their arguments: !GetAtt Queue.Arn is the text
// Queue.Arn.
type resource struct {
	Type                string         `yaml:"Type"`
	DeletionPolicy      string         `yaml:"DeletionPolicy"`
	UpdateReplacePolicy string         `yaml:"UpdateReplacePolicy"`
	Properties          map[string]any `yaml:"Properties"`
}

type document struct {
	Parameters map[string]any `yaml:"Parameters"`
	Globals    struct {
		Function shared `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]resource `yaml:"Resources"`
}

// deployed returns template.yaml together with the resources of monitoring.yaml, which it nests.
// Both files are read only once, so callers must not change the result.
var deployed = sync.OnceValues(func() (document, error) {
	doc, err := readDocument("template.yaml", nil)
	if err != nil {
		return doc, err
	}
	nested, err := readDocument("monitoring.yaml", passed(doc))
	for name, r := range nested.Resources {
		doc.Resources[name] = r
	}
	return doc, err
})

// passed returns the values that template.yaml passes for the parameters of monitoring.yaml.
func passed(doc document) map[string]any {
	all, _ := doc.Resources["Monitoring"].Properties["Parameters"].(map[string]any)
	return all
}

// readDocument reads one of the project's templates. It replaces the references to its
// parameters by the given values.
func readDocument(name string, values map[string]any) (doc document, err error) {
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		return doc, err
	}
	for parameter, value := range values {
		ref := regexp.MustCompile(`!Ref ` + parameter + `\b`)
		text = ref.ReplaceAllLiteral(text, fmt.Appendf(nil, "!Ref '%v'", value))
		text = bytes.ReplaceAll(text, []byte("${"+parameter+"}"), fmt.Appendf(nil, "${%v}", value))
	}
	return doc, yaml.Unmarshal(text, &doc)
}

func TestD2_MonitoringGetsEachOfItsParameters(t *testing.T) {
	doc, err := readDocument("template.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	nested, err := readDocument("monitoring.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := passed(doc)
	if diff := cmp.Diff(keysOf(nested.Parameters), keysOf(got)); diff != "" {
		t.Errorf("monitoring.yaml's parameters, and what template.yaml passes (-want +got):\n%s", diff)
	}
	for parameter, value := range got {
		resource, attribute, _ := strings.Cut(fmt.Sprint(value), ".")
		if want := resource + attribute; parameter != want && parameter != strings.TrimSuffix(resource, "Queue")+"QueueName" && parameter != "Service" {
			t.Errorf("the parameter %s gets %v", parameter, value)
		}
	}
}

func deployedResources(t *testing.T) map[string]resource {
	t.Helper()
	doc, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	return doc.Resources
}

// shared is the part of Globals that the tests read.
type shared struct {
	Environment   map[string]any `yaml:"Environment"`
	LoggingConfig map[string]any `yaml:"LoggingConfig"`
}

func globals(t *testing.T) shared {
	t.Helper()
	doc, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	return doc.Globals.Function
}

// at returns the value at a path inside v. Each step of the path is the name of a member or the
// index of a list item. If there is no such value, at returns nil.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				return nil
			}
			v = list[s]
		}
	}
	return v
}

func texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{fmt.Sprint(v)}
	}
	all := make([]string, len(list))
	for i, item := range list {
		all[i] = fmt.Sprint(item)
	}
	return all
}

// The roles of the outbox's functions allow only the actions that the functions use, and only on
// the resources that they use. make validate checks that no role has a wildcard.
func TestS1_RolesOfTheOutboxAllowWhatIsUsed(t *testing.T) {
	records := "IdempotencyTable.Arn: dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem"
	for role, want := range map[string][]string{
		"ReceiptsRole": {
			records,
			"NotificationsQueue.Arn: sqs:SendMessage",
			"PaymentsTable.StreamArn: dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams",
			"ReceiptsDeadQueue.Arn: sqs:SendMessage",
			"ReceiptsLogs.Arn: logs:CreateLogStream logs:PutLogEvents",
			"ReceiptsTable.Arn: dynamodb:PutItem",
		},
		"NotificationsRole": {
			records,
			"NotificationsLogs.Arn: logs:CreateLogStream logs:PutLogEvents",
			"NotificationsQueue.Arn: sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage",
		},
	} {
		r := deployedResources(t)[role]
		var got []string
		policies, _ := r.Properties["Policies"].([]any)
		for _, policy := range policies {
			statements, _ := at(policy, "PolicyDocument", "Statement").([]any)
			for _, s := range statements {
				actions := texts(at(s, "Action"))
				slices.Sort(actions)
				if at(s, "Effect") != "Allow" {
					t.Errorf("%s: a statement with the effect %v", role, at(s, "Effect"))
				}
				got = append(got, fmt.Sprint(at(s, "Resource"))+": "+strings.Join(actions, " "))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" || r.Properties["ManagedPolicyArns"] != nil {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
	for function, role := range map[string]string{"ReceiptsFunction": "ReceiptsRole.Arn", "NotificationsFunction": "NotificationsRole.Arn"} {
		if got := deployedResources(t)[function].Properties["Role"]; got != role {
			t.Errorf("%s has the role %v, want %s", function, got, role)
		}
	}
}

// Messages contain payments, so queues are encrypted at rest, and their policy refuses requests
// without TLS.
func TestS1_QueuesAreEncrypted(t *testing.T) {
	var queues, arns []string
	all := deployedResources(t)
	for name, r := range all {
		if r.Type != "AWS::SQS::Queue" {
			continue
		}
		queues, arns = append(queues, name), append(arns, name+".Arn")
		if r.Properties["SqsManagedSseEnabled"] != true {
			t.Errorf("%s is not encrypted", name)
		}
	}
	slices.Sort(queues)
	slices.Sort(arns)
	for name, r := range all {
		if r.Type == "AWS::SQS::QueuePolicy" && name != "QueuesPolicy" {
			t.Errorf("%s is a second policy of queues, whose roles say who may what", name)
		}
	}
	policy := all["QueuesPolicy"].Properties
	if statements, _ := at(policy, "PolicyDocument", "Statement").([]any); len(statements) != 1 {
		t.Errorf("the queues' policy has the statements %v; want the one that refuses", statements)
	}
	statement := at(policy, "PolicyDocument", "Statement", 0)
	covered, refused := texts(policy["Queues"]), texts(at(statement, "Resource"))
	slices.Sort(covered)
	slices.Sort(refused)
	if !slices.Equal(covered, queues) || !slices.Equal(refused, arns) {
		t.Errorf("the policy is for %v, and about %v; the queues are %v", covered, refused, queues)
	}
	got := []any{at(statement, "Effect"), at(statement, "Principal"), at(statement, "Action"), at(statement, "Condition", "Bool", "aws:SecureTransport")}
	if diff := cmp.Diff([]any{"Deny", "*", "sqs:*", "false"}, got); diff != "" {
		t.Errorf("what is refused (-want +got):\n%s", diff)
	}
}

// Tables and dead-letter queues are kept if their stack is deleted, or if a change makes
// CloudFormation replace them.
func TestD2_TablesAndDeadLettersOutliveTheirStack(t *testing.T) {
	kept := 0
	for name, r := range deployedResources(t) {
		if r.Type != "AWS::DynamoDB::Table" && (r.Type != "AWS::SQS::Queue" || !strings.HasSuffix(name, "DeadQueue")) {
			continue
		}
		if kept++; r.DeletionPolicy != "RetainExceptOnCreate" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s has the DeletionPolicy %q and the UpdateReplacePolicy %q", name, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
	if kept != 7 {
		t.Errorf("there are %d; want 5 tables and 2 dead-letter queues", kept)
	}
}

// These settings must keep their defaults, because messages could be stuck otherwise.
// ReservedConcurrentExecutions can keep a function from running. RedriveAllowPolicy can make a
// dead-letter queue refuse messages. Enabled and FilterCriteria can stop an event source.
func TestOutbox_NothingStopsMessagesOnTheirWay(t *testing.T) {
	for name, r := range deployedResources(t) {
		if n := r.Properties["ReservedConcurrentExecutions"]; n != nil {
			t.Errorf("%s: ReservedConcurrentExecutions is %v", name, n)
		}
		if policy := r.Properties["RedriveAllowPolicy"]; policy != nil {
			t.Errorf("%s: RedriveAllowPolicy is %v", name, policy)
		}
		events, _ := r.Properties["Events"].(map[string]any)
		for event := range events {
			for _, property := range []string{"Enabled", "FilterCriteria"} {
				if v := at(events, event, "Properties", property); v != nil {
					t.Errorf("%s: the %s of %s is %v", name, property, event, v)
				}
			}
		}
	}
}

// Every alarm notifies the topic, which a deployment may leave out, and most alarms ring at the
// first event.
func TestD2_EveryAlarmTellsAtTheFirstSign(t *testing.T) {
	topic := []any{"HasAlarmTopic", []any{"AlarmTopicArn"}, "AWS::NoValue"}
	alarms := 0
	for name, r := range deployedResources(t) {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		alarms++
		p := r.Properties
		if enabled := p["ActionsEnabled"]; enabled != nil && enabled != true {
			t.Errorf("%s: ActionsEnabled is %v", name, enabled)
		}
		if diff := cmp.Diff([]any{topic, topic}, []any{p["AlarmActions"], p["OKActions"]}); diff != "" {
			t.Errorf("%s: whom it tells (-want +got):\n%s", name, diff)
		}
		byDegree := map[string]bool{"ReceiptsLateAlarm": true, "NotificationsLateAlarm": true, "DuplicatesAlarm": true,
			"MismatchesAlarm": true, "OutOfTimeAlarm": true, "ReleasesRepeatedAlarm": true, "HeldTooLongAlarm": true}
		if !byDegree[name] && fmt.Sprint(p["Threshold"]) != "1" {
			t.Errorf("%s: Threshold is %v; want the first that is counted", name, p["Threshold"])
		}
		missing, operator := "notBreaching", "GreaterThanOrEqualToThreshold"
		switch name { // their metrics are always written, so missing data means a failure
		case "MetricsMissingAlarm":
			missing, operator = "breaching", "LessThanThreshold"
		case "TTLDisabledAlarm":
			missing = "breaching"
		}
		if p["ComparisonOperator"] != operator || p["TreatMissingData"] != missing {
			t.Errorf("%s: %v, missing data %v", name, p["ComparisonOperator"], p["TreatMissingData"])
		}
		var minutes int
		if _, err := fmt.Sscan(fmt.Sprint(p["EvaluationPeriods"]), &minutes); err != nil || minutes > 5 {
			t.Errorf("%s: EvaluationPeriods is %v", name, p["EvaluationPeriods"])
		}
	}
	if alarms == 0 {
		t.Error("the template has no alarm")
	}
}

// alarm is an alarm on one metric.
type alarm struct{ namespace, metric, dimension, of, statistic string }

// alarmOn returns the threshold of the alarm on a metric, in the metric's unit, and the time that
// CloudWatch evaluates. It fails the test if there is no such alarm.
func alarmOn(t *testing.T, want alarm) (threshold int, late time.Duration) {
	t.Helper()
	for name, r := range deployedResources(t) {
		p := r.Properties
		got := alarm{fmt.Sprint(p["Namespace"]), fmt.Sprint(p["MetricName"]), fmt.Sprint(at(p, "Dimensions", 0, "Name")), fmt.Sprint(at(p, "Dimensions", 0, "Value")), fmt.Sprint(p["Statistic"])}
		if r.Type != "AWS::CloudWatch::Alarm" || got != want {
			continue
		}
		if p["ComparisonOperator"] != "GreaterThanOrEqualToThreshold" || p["AlarmActions"] == nil || len(fmt.Sprint(p["AlarmDescription"])) < 100 {
			t.Errorf("%s: %v; want it to tell somebody what to do when the threshold is reached", name, p)
		}
		number := func(key string) int {
			n, err := strconv.Atoi(fmt.Sprint(p[key]))
			if err != nil {
				t.Fatalf("%s: %s: %v", name, key, err)
			}
			return n
		}
		if number("DatapointsToAlarm") > number("EvaluationPeriods") {
			t.Errorf("%s: more datapoints than periods", name)
		}
		return number("Threshold"), time.Duration(number("Period")*number("EvaluationPeriods")) * time.Second
	}
	t.Fatalf("no alarm on %+v", want)
	return 0, 0
}

// A message in a dead-letter queue was not processed, so the first one raises the alarm.
func TestOutbox_OneDeadLetterRaisesTheAlarm(t *testing.T) {
	for _, queue := range []string{"ReceiptsDeadQueue", "NotificationsDeadQueue"} {
		threshold, late := alarmOn(t, alarm{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue + ".QueueName", "Maximum"})
		if threshold != 1 || late > time.Minute {
			t.Errorf("%s: the alarm comes at %d messages, after %v; want it at the first, in a minute", queue, threshold, late)
		}
	}
}

// The alarms on lateness ring late enough that a retry after a dead attempt raises no alarm, and
// early enough that there is time to repair the cause. A message of the queue that always fails
// is dead-lettered before, and has another alarm. A failing record of the stream raises this
// alarm, because it delays the records behind it.
func TestOutbox_LatenessIsToldAboveTheRetriesAndBelowTheEnd(t *testing.T) {
	o := deployedOutbox(t)
	q := o.named(t, "NotificationsQueue")
	for _, c := range []struct {
		alarm
		unit         time.Duration
		retries, end time.Duration
	}{
		{alarm{"AWS/Lambda", "IteratorAge", "FunctionName", "ReceiptsFunction", "Maximum"}, time.Millisecond,
			5 * (o.leaseOf(o.receipts) + o.receipts.Timeout), o.stream.MaxAge},
		{alarm{"AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "NotificationsQueue.QueueName", "Maximum"}, time.Second,
			time.Duration(q.MaxReceives) * q.Visibility, q.Retention},
	} {
		threshold, late := alarmOn(t, c.alarm)
		if age := time.Duration(threshold) * c.unit; age < c.retries || age+late > c.end/10 || age+late > 15*time.Minute {
			t.Errorf("%s: the alarm comes at %v, and %v later; the retries take %v, the end is at %v", c.metric, age, late, c.retries, c.end)
		}
	}
}

func TestOutbox_EveryFunctionIsInTheAlarmsOnFunctions(t *testing.T) {
	all := deployedResources(t)
	var functions []string
	for name, r := range all {
		if r.Type == "AWS::Serverless::Function" {
			functions = append(functions, name)
		}
	}
	slices.Sort(functions)
	for name, metric := range map[string]string{"FunctionErrorsAlarm": "Errors", "FunctionThrottlesAlarm": "Throttles"} {
		watched := map[string]bool{}
		metrics, _ := all[name].Properties["Metrics"].([]any)
		for _, m := range metrics {
			if at(m, "MetricStat", "Metric", "MetricName") == metric {
				watched[fmt.Sprint(at(m, "MetricStat", "Metric", "Dimensions", 0, "Value"))] = true
			}
		}
		if diff := cmp.Diff(functions, slices.Sorted(maps.Keys(watched))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
