package template_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// query is a saved query of CloudWatch Logs Insights.
type query struct {
	text   string
	groups []string // logical IDs of the log groups that it reads
}

// queries returns the saved queries by their names within the stack's folder.
func queries(t *testing.T) map[string]query {
	t.Helper()
	all := map[string]query{}
	for id, r := range deployedResources(t) {
		if r.Type != "AWS::Logs::QueryDefinition" {
			continue
		}
		name, ok := strings.CutPrefix(fmt.Sprint(r.Properties["Name"]), "${AWS::StackName}/")
		if !ok {
			t.Errorf("%s is not in the folder of its stack: %v", id, r.Properties["Name"])
		}
		all[name] = query{fmt.Sprint(r.Properties["QueryString"]), texts(r.Properties["LogGroupNames"])}
	}
	return all
}

func TestO1_QueriesThatAnOperatorNeeds(t *testing.T) {
	want := []string{"errors by code", "failed attempts", "failed messages", "find a key", "history of a record",
		"repeated requests", "slow calls", "throttled keys", "uncertain calls", "unguarded calls"}
	if diff := cmp.Diff(want, keysOf(queries(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A query reads the logs of every function.
func TestO1_QueriesReadEveryLog(t *testing.T) {
	want := map[string]bool{}
	for _, r := range deployedResources(t) {
		if r.Type == "AWS::Serverless::Function" {
			want[fmt.Sprint(at(r.Properties, "LoggingConfig", "LogGroup"))] = true
		}
	}
	for name, q := range queries(t) {
		if diff := cmp.Diff(keysOf(want), slices.Sorted(slices.Values(q.groups))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// logged returns the names of the fields in the lines of functionLog.
func logged(t *testing.T) map[string]bool {
	t.Helper()
	fields := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:^|\s)([a-zA-Z]+)=`).FindAllStringSubmatch(functionLog(t), -1) {
		fields[m[1]] = true // the text format and the JSON format have the same fields
	}
	return fields
}

// functionLog returns what a function logs if each outcome occurs once, a message fails, and
// another message is not begun for lack of time. The functions' own logger writes it.
func functionLog(t *testing.T) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is read again
	stdout := os.Stdout
	os.Stdout = file
	logger := lambdacontext.NewLogger()
	os.Stdout = stdout
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "1"})
	for _, e := range everyEvent() {
		lambdaidem.SlogObserver(logger).Observe(ctx, e)
	}
	failMessages(ctx, t, logger)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// failMessages makes one message fail, and leaves another one to be delivered again because too
// little time is left. The guard logs both.
func failMessages(ctx context.Context, t *testing.T, logger *slog.Logger) {
	t.Helper()
	before := slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	handler := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace, o.Observer = "queue", lambdaidem.Discard }).
		SQS(func(context.Context, events.SQSMessage) error { return io.ErrUnexpectedEOF })
	late, end := context.WithDeadline(ctx, time.Now())
	defer end()
	for _, ctx := range []context.Context{ctx, late} {
		if _, err := handler(ctx, idemtest.SQS("arn:aws:sqs:us-east-1:123456789012:queue", idemtest.Message{Body: "a"})); err != nil {
			t.Fatal(err)
		}
	}
}

// measured returns the top-level fields of a line of metrics.
func measured(t *testing.T) map[string]bool {
	t.Helper()
	fields := map[string]bool{}
	for _, doc := range documents(t) {
		for name := range doc.Members {
			fields[name] = true
		}
		for _, d := range doc.Data {
			fields[d.Name] = true
		}
	}
	return fields
}

// words are the keywords and functions of the query language that these queries use (Amazon
// CloudWatch Logs, "CloudWatch Logs Insights language query syntax"). Any other word is a field.
var words = []string{"filter", "fields", "stats", "sort", "limit", "parse", "by", "as", "in", "and", "asc", "desc",
	"ispresent", "count", "earliest", "latest"}

// ofInsights lists the fields that CloudWatch Logs adds to each line.
var ofInsights = []string{"@timestamp"}

func withoutComments(text string) string {
	return regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(text, "")
}

// fieldsOf returns the fields that a query reads, without those that the query defines.
func fieldsOf(text string) []string {
	text = withoutComments(text)
	made := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bas (\w+)|\?<(\w+)>`).FindAllStringSubmatch(text, -1) {
		made[m[1]+m[2]] = true
	}
	text = regexp.MustCompile(`"[^"]*"|(?s)/.*?/`).ReplaceAllString(text, "")
	found := map[string]bool{}
	for _, word := range regexp.MustCompile(`@?[A-Za-z_]\w*`).FindAllString(text, -1) {
		if !slices.Contains(words, word) && !made[word] {
			found[word] = true
		}
	}
	return keysOf(found)
}

func TestFieldsOf_AreFound(t *testing.T) {
	text := "# comment, nothing\nfilter a in [\"b\", \"c\"] and ispresent(D)\n| parse e /(?<code>x_[a-z]+)/\n| stats count(*) as times, latest(@timestamp) as last by f, code\n| sort times desc\n| limit 5\n"
	if got := fieldsOf(text); !slices.Equal(got, []string{"@timestamp", "D", "a", "e", "f"}) {
		t.Errorf("they are %q", got)
	}
}

// A query on a field that no line has finds nothing and reports no error. There are two kinds of
// lines, logs and metrics, and each query reads fields of only one kind.
func TestO1_QueriesNameFieldsOfTheLog(t *testing.T) {
	warnings, counts := logged(t), measured(t)
	for name, q := range queries(t) {
		fields := fieldsOf(q.text)
		if len(fields) < 3 {
			t.Errorf("%s reads %q alone", name, fields)
		}
		var lines map[string]bool
		switch { // fields that only one kind of line has
		case slices.Contains(fields, "message"), slices.Contains(fields, "error"):
			lines = warnings
		case slices.Contains(fields, "service"), slices.Contains(fields, "Duration"):
			lines = counts
		default:
			t.Errorf("%s is about no kind of lines: %q", name, fields)
		}
		for _, f := range fields {
			if !lines[f] && !slices.Contains(ofInsights, f) {
				t.Errorf("%s reads %s; its lines have %q", name, f, slices.Sorted(maps.Keys(lines)))
			}
		}
	}
	for _, apart := range []string{"message", "error", "requestId", "duration"} {
		if counts[apart] || !warnings[apart] {
			t.Errorf("%s tells no log lines apart", apart)
		}
	}
	for _, apart := range []string{"service", "Duration"} {
		if !counts[apart] || warnings[apart] {
			t.Errorf("%s tells no metrics apart", apart)
		}
	}
}

// Queries look only for texts that occur in lines: outcomes, messages and the reason for
// throttling.
func TestO1_QueriesAskForWhatCanBe(t *testing.T) {
	kinds := map[string]bool{string(lambdaidem.ReasonThrottled): true, "ID": true, "HASH": true}
	for _, m := range regexp.MustCompile(`msg="([^"]*)"|message="([^"]*)"`).FindAllStringSubmatch(functionLog(t), -1) {
		kinds[m[1]+m[2]] = true
	}
	for _, e := range everyEvent() {
		kinds[string(e.Kind)] = true
	}
	asked := regexp.MustCompile(`"([^"]*)"`)
	for name, q := range queries(t) {
		for _, m := range asked.FindAllStringSubmatch(withoutComments(q.text), -1) {
			if !kinds[m[1]] {
				t.Errorf("%s asks for %q, which is never there", name, m[1])
			}
		}
	}
}

// The pattern of the query "errors by code" finds the code in a logged error.
func TestO1_ErrorsByCodeFindsTheCode(t *testing.T) {
	m := regexp.MustCompile(`parse error /(.*)/`).FindStringSubmatch(queries(t)["errors by code"].text)
	if m == nil {
		t.Fatal("the query parses no error")
	}
	code := regexp.MustCompile(m[1])
	for text, want := range map[string]string{
		(&lambdaidem.Error{Code: lambdaidem.ErrStoreUnavailable, Detail: "Try again.", Err: io.ErrUnexpectedEOF}).Error(): "idempotency_store_unavailable",
		fmt.Errorf("charge: %w", lambdaidem.ErrLeaseLost).Error():                                                         "idempotency_lease_lost",
		io.ErrUnexpectedEOF.Error(): "",
	} {
		found := code.FindStringSubmatch(text)
		if got := strings.Join(found[min(1, len(found)):], ""); got != want {
			t.Errorf("in %q it finds %q, want %q", text, got, want)
		}
	}
}

// Each line of metrics counts as INFO, so a higher level would drop them all (AWS
// Lambda, "Log-level filtering").
func TestO1_LogLevelLetsMetricsPass(t *testing.T) {
	functions := 0
	for name, r := range deployedResources(t) {
		if r.Type != "AWS::Serverless::Function" {
			continue
		}
		functions++
		if own, _ := r.Properties["LoggingConfig"].(map[string]any); len(own) != 1 || own["LogGroup"] == nil {
			t.Errorf("%s has a LoggingConfig of its own: %v; want its log group, the rest is for all", name, own)
		}
	}
	if functions == 0 {
		t.Error("the template has no function")
	}
	all := globals(t).LoggingConfig
	if all["LogFormat"] != "JSON" || all["ApplicationLogLevel"] != "INFO" {
		t.Errorf("the LoggingConfig of all functions is %v", all)
	}
}
