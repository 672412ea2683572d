package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

func TestO3_ChecksTheTable(t *testing.T) {
	d := openDesk(t)
	d.idem("check").want(t, exitDone, "All is well")
	var v struct{ Findings []finding }
	d.idem("check", "--table", "no-such-table", "-o", "json").want(t, exitFindings).into(t, &v)
	if len(v.Findings) != 1 || v.Findings[0].Code != "no_table" || v.Findings[0].Warning {
		t.Errorf("of no table it says %+v", v)
	}
	d.idem("check", "--attribute", "expiration=ttl").want(t, exitFindings, "ttl_wrong_attribute")
	d.idem("check", "--queue", "q").want(t, exitUsage, "--function")
}

// For a table that does not exist, check reports one finding and makes no further checks.
func TestO3_CheckLooksForNoKeysInATableThatIsMissing(t *testing.T) {
	d := openDesk(t)
	var v struct{ Findings []finding }
	d.idem("check", "--table", "no-such-table", "--key-file", d.encrypting(), "-o", "json").want(t, exitFindings).into(t, &v)
	if len(v.Findings) != 1 || v.Findings[0].Code != string(dynamostore.NoTable) {
		t.Errorf("the findings are %+v; want the missing table alone", v.Findings)
	}
}

// If the credentials don't allow Scan, check reports something that was not checked, not an error:
// the functions themselves never scan the table.
func TestO3_CheckWithoutThePermissionToScanIsIncomplete(t *testing.T) {
	d := openDesk(t)
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(endpoint) //nolint:gosec // the proxy forwards only to the tests' database
	noScan := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Scan") {
			proxy.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}`))
	}))
	t.Cleanup(noScan.Close)
	var v struct{ Findings []finding }
	d.idem("check", "--key-file", d.encrypting(), "--endpoint-url", noScan.URL, "-o", "json").want(t, exitIncomplete).into(t, &v)
	if len(v.Findings) != 1 || !v.Findings[0].NotChecked || v.Findings[0].Permission != "dynamodb:Scan" {
		t.Errorf("the findings are %+v; want the missing permission alone", v.Findings)
	}
}

func TestO3_AnInterruptedCheckHasNoVerdict(t *testing.T) {
	openDesk(t)
	ctx, interrupt := context.WithCancel(t.Context())
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	var out bytes.Buffer
	if code := Run(ctx, []string{"check", "--endpoint-url", silent.URL}, Streams{Out: &out, Err: &out}); code != exitStopped {
		t.Errorf("exit code %d; want %d:\n%s", code, exitStopped, &out)
	}
}

func TestO3_CheckReportsAQueueThatItCannotFind(t *testing.T) {
	d := openDesk(t)
	serveOrders(t)
	functionsFedBy(t, "5", `{"EventSourceArn":"arn:aws:sqs:us-east-1:000000000000:deleted","FunctionResponseTypes":["ReportBatchItemFailures"]}`)
	d.idem("check", "--function", "pay").want(t, exitIncomplete, "NOT CHECKED", "the visibility timeout of queue deleted", "sqs:GetQueueUrl")
}

// functions starts a server for the calls of Lambda's API that check makes. The function has the
// given timeout, and the queue orders as its event source without a batching window.
func functions(t *testing.T, timeout string) {
	t.Helper()
	functionsWith(t, timeout, "0")
}

// functionsWith is like functions, but with a batching window, in seconds. If window is "", listing
// the event source mappings is denied.
func functionsWith(t *testing.T, timeout, window string) {
	t.Helper()
	if window == "" {
		functionsFedBy(t, timeout, "")
		return
	}
	functionsFedBy(t, timeout,
		`{"EventSourceArn":"arn:aws:sqs:us-east-1:000000000000:orders","FunctionResponseTypes":["ReportBatchItemFailures"],"MaximumBatchingWindowInSeconds":`+window+`}`)
}

// functionsFedBy starts a server that returns the function's timeout and its event source mappings,
// which are JSON objects separated by commas. If mappings is "", listing them is denied.
func functionsFedBy(t *testing.T, timeout, mappings string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2015-03-31/functions/{name}/configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Timeout":` + timeout + `}`))
	})
	mux.HandleFunc("GET /2015-03-31/event-source-mappings", func(w http.ResponseWriter, _ *http.Request) {
		if mappings == "" {
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"EventSourceMappings":[` + mappings + `]}`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", server.URL)
}

func TestO3_ComparesVisibilityAndTimeout(t *testing.T) {
	d := openDesk(t)
	orders := serveOrders(t)
	for _, c := range []struct {
		timeout string
		code    int
		says    string
	}{
		{"5", exitDone, "All is well"},
		{"6", exitDone, "warning visibility_below_advice"},
		{"28", exitDone, "warning visibility_below_advice"},
		{"29", exitFindings, "WRONG visibility_too_short: queue orders has a visibility timeout of 30s, and function pay may run for 29s"},
		{"60", exitFindings, "visibility_too_short"},
	} {
		functions(t, c.timeout)
		d.idem("check", "--function", "pay").want(t, c.code, c.says)
	}
	d.idem("check", "--function", "pay", "--queue", orders).want(t, exitFindings, "visibility_too_short")
	d.idem("check", "--function", "pay", "--queue", strings.Replace(orders, "/orders", "/none", 1)).want(t, exitIncomplete, "none", "sqs:GetQueueAttributes")
	o := checkCommand{function: "f", maxSkew: 2 * time.Second}
	if f := o.checkVisibility(feed{url: "https://sqs/1/q"}, 12*time.Second, 10*time.Second); f == nil || !f.Warning {
		t.Errorf("at the least that will do it says %+v", f)
	}
}

// A message is invisible while Lambda waits for a batch to fill, so the batching window counts as
// part of the time that the visibility timeout must cover.
func TestO3_TheBatchingWindowCountsAsPartOfTheVisibilityTimeout(t *testing.T) {
	d := openDesk(t)
	orders := serveOrders(t)
	for _, c := range []struct {
		window string
		code   int
		says   string
	}{
		{"0", exitDone, "All is well"},
		{"1", exitDone, "warning visibility_below_advice: queue orders has a visibility timeout of 30s; AWS advises six times the timeout of function pay and the batching window, 31s"},
		{"23", exitDone, "warning visibility_below_advice"},
		{"24", exitFindings, "may run for 5s after a batching window of 24s: "},
	} {
		functionsWith(t, "5", c.window)
		d.idem("check", "--function", "pay").want(t, c.code, c.says)
		d.idem("check", "--function", "pay", "--queue", orders).want(t, c.code, c.says)
	}
}

// If the mapping has no ReportBatchItemFailures, Lambda treats a response with a list of failures
// as a success.
func TestV2_CheckFindsAMappingThatLosesReportedFailures(t *testing.T) {
	d := openDesk(t)
	orders := serveOrders(t)
	const (
		reports = `"FunctionResponseTypes":["ReportBatchItemFailures"]`
		broker  = `{"Queues":["orders"],"EventSourceArn":"arn:aws:mq:us-east-1:000000000000:broker:b:b-1"}` // a source whose failures the function does not report, so check ignores it
	)
	for source, name := range map[string]string{
		`"EventSourceArn":"arn:aws:sqs:us-east-1:000000000000:orders"`:                                         "sqs orders",
		`"EventSourceArn":"arn:aws:kinesis:us-east-1:000000000000:stream/clicks"`:                              "kinesis stream/clicks",
		`"EventSourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/ledger/stream/2026-01-01T00:00:00.0"`: "dynamodb table/ledger/stream/2026-01-01T00:00:00.0",
		`"EventSourceArn":"arn:aws:kafka:us-east-1:000000000000:cluster/c/1","Topics":["orders"]`:              "kafka cluster/c/1",
		`"SelfManagedEventSource":{"Endpoints":{"KAFKA_BOOTSTRAP_SERVERS":["a:9092"]}},"Topics":["orders"]`:    "kafka orders",
	} {
		functionsFedBy(t, "5", broker+",{"+source+","+reports+"}")
		d.idem("check", "--function", "pay").want(t, exitDone, "All is well")
		functionsFedBy(t, "5", "{"+source+"}")
		says := "WRONG failures_not_reported: the mapping from " + name + " to function pay has no ReportBatchItemFailures"
		d.idem("check", "--function", "pay").want(t, exitFindings, says)
		d.idem("check", "--function", "pay", "--queue", orders).want(t, exitFindings, says)
		d.idem("check", "--function", "pay", "--whole-batch").want(t, exitDone, "All is well")
	}
	d.idem("check", "--whole-batch").want(t, exitUsage, "--whole-batch needs --function")
}

func TestO3_CheckKeepsItsFindingsWhenAPermissionIsMissing(t *testing.T) {
	d := openDesk(t)
	orders := serveOrders(t)
	functionsWith(t, "60", "")
	d.idem("check", "--function", "pay").want(t, exitIncomplete, "NOT CHECKED not_checked", "permission lambda:ListEventSourceMappings")
	d.idem("check", "--function", "pay", "--queue", orders, "--attribute", "expiration=ttl").
		want(t, exitFindings, "WRONG ttl_wrong_attribute", "NOT CHECKED not_checked", "WRONG visibility_too_short")
	var v struct{ Findings []finding }
	d.idem("check", "--function", "pay", "-o", "json").want(t, exitIncomplete).into(t, &v)
	if len(v.Findings) != 1 || !v.Findings[0].NotChecked || v.Findings[0].Permission != "lambda:ListEventSourceMappings" {
		t.Errorf("the findings are %+v; want what was not checked, and its permission", v.Findings)
	}
}

func TestO3_CheckEndsWhenNothingAnswersAndSaysWhatItWaitedFor(t *testing.T) {
	d := openDesk(t)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client is gone only after it has read the body
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	began := time.Now()
	d.idem("check", "--endpoint-url", silent.URL, "--timeout", "100ms").
		want(t, exitIncomplete, "NOT CHECKED timeout: dynamodb:DescribeTable on table", "--timeout 100ms")
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", silent.URL)
	d.idem("check", "--function", "pay", "--attribute", "expiration=ttl", "--timeout", "1s").
		want(t, exitFindings, "WRONG ttl_wrong_attribute", "can't read the timeout of function pay", "no answer within --timeout 1s")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	d.idem("check", "--timeout", "0s").want(t, exitUsage, "--timeout")
}

// check --function needs AWS, because the local emulator has no configuration of functions.
func TestO3_CheckFunctionSaysThatItNeedsAWS(t *testing.T) {
	d := openDesk(t)
	d.idem("check", "--function", "pay").
		want(t, exitIncomplete, "NOT CHECKED not_checked: function pay: the table is at http://", "asks AWS for a deployed function")
	emulated := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", "UnknownOperationException") // like the emulator
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(emulated.Close)
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", emulated.URL)
	d.idem("check", "--function", "pay").
		want(t, exitIncomplete, "the service at this endpoint has no lambda:GetFunctionConfiguration; run check --function with AWS's endpoints")
	for endpoint, want := range map[string]bool{
		"http://127.0.0.1:8000": true, "http://localhost:8000": true, "http://[::1]:8000": true,
		"": false, "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com": false, "http://10.0.0.1:8000": false,
	} {
		if got := isLocal(endpoint); got != want {
			t.Errorf("isLocal(%q) = %t", endpoint, got)
		}
	}
}

func TestO3_CheckBlamesNoPermissionWhenAServiceCannotBeReached(t *testing.T) {
	d := openDesk(t)
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:1") // nothing listens there
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	var v struct{ Findings []finding }
	d.idem("check", "--function", "pay", "-o", "json").
		want(t, exitIncomplete, "can't read the timeout of function pay, and its queues: no reply; check the Region, the network and AWS_ENDPOINT_URL_LAMBDA").into(t, &v)
	if len(v.Findings) != 1 || v.Findings[0].Permission != "" {
		t.Errorf("the findings are %+v; want one without a permission", v.Findings)
	}
}

func TestO3_CheckFindsAnIndexThatRefusesRecords(t *testing.T) {
	d := openDesk(t)
	table := d.table + "-indexed"
	if _, err := d.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("scope"), AttributeType: types.ScalarAttributeTypeN},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-scope"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("scope"), KeyType: types.KeyTypeHash}},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = d.client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
	})
	d.idem("check", "--table", table).want(t, exitFindings, `WRONG index_conflict: index "by-scope"`, `"scope" of type N`, "type S")
}

func TestS1_CheckFindsAKeyThatDoesNotDecryptTheTable(t *testing.T) {
	for _, record := range []string{"an answer", "steps"} {
		t.Run(record, func(t *testing.T) {
			d := openDesk(t)
			file := d.encrypting()
			if record == "steps" {
				d.pay(d.held(), "dead", died)
			} else {
				d.pay(d.guard, "k", paid)
			}
			line := func(id string, secret byte) string {
				return id + " " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{secret}, 32)) + "\n"
			}
			d.idem("check").want(t, exitDone, "All is well")
			d.idem("check", "--key-file", file).want(t, exitDone, "All is well")
			d.idem("check", "--key-file", keyFile(t, line("k2", 2)+line("k1", 7))).want(t, exitDone, "All is well")
			d.idem("check", "--key-file", keyFile(t, line("k2", 7))).want(t, exitFindings, "WRONG unreadable_texts", `under the key "k1", which the keys given don't have`)
			d.idem("check", "--key-file", keyFile(t, line("k1", 2))).want(t, exitFindings, "WRONG unreadable_texts", `by that id does not decrypt it`)
		})
	}
	d := openDesk(t)
	t.Setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1") // nothing listens there
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	d.idem("check", "--kms-key", "alias/a").want(t, exitFindings, "WRONG no_key", "kmskeys:")
}

// serveOrders starts a server for the calls of SQS that check makes. It has one queue, orders,
// whose visibility timeout is 30 s. serveOrders returns the queue's URL.
func serveOrders(t *testing.T) string {
	t.Helper()
	var url string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ QueueName, QueueUrl string } //nolint:revive,staticcheck // names defined by SQS
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch action := r.Header.Get("X-Amz-Target"); {
		case action == "AmazonSQS.GetQueueUrl" && in.QueueName == "orders":
			_, _ = fmt.Fprintf(w, `{"QueueUrl":%q}`, url)
		case action == "AmazonSQS.GetQueueAttributes" && in.QueueUrl == url:
			_, _ = io.WriteString(w, `{"Attributes":{"VisibilityTimeout":"30"}}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`)
		}
	}))
	t.Cleanup(server.Close)
	url = server.URL + "/000000000000/orders"
	t.Setenv("AWS_ENDPOINT_URL_SQS", server.URL)
	return url
}

// Something that was not checked outweighs a warning, and a problem outweighs both.
func TestO3_TheWorstFindingDecidesTheExitCode(t *testing.T) {
	notChecked, warning, wrong := finding{NotChecked: true}, finding{Warning: true}, finding{}
	for code, found := range map[int][]finding{
		exitDone: {warning}, exitIncomplete: {notChecked, warning}, exitFindings: {notChecked, warning, wrong},
	} {
		if got := exitOfOrDone(resultOf(found)); got != code {
			t.Errorf("%+v: exit code %d; want %d", found, got, code)
		}
		slices.Reverse(found)
		if got := exitOfOrDone(resultOf(found)); got != code {
			t.Errorf("%+v: exit code %d; want %d", found, got, code)
		}
	}
}

// If Lambda lists no event source mapping, check prints a warning: perhaps only an API calls the
// function, or the name is wrong, or the mappings belong to an alias.
func TestO3_AFunctionThatNothingFeedsIsNotVouchedFor(t *testing.T) {
	d := openDesk(t)
	functionsFedBy(t, "900", " ")
	d.idem("check", "--function", "pay").want(t, exitDone, "warning nothing_feeds: Lambda lists no event source mapping for function pay", "pay:live")
}
