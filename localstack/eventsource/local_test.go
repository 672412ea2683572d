package eventsource_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// closeLocal releases what the tests that use DynamoDB Local have left open.
var closeLocal = func() {}

// local is a test with a table on DynamoDB Local and a client for ElasticMQ.
type local struct {
	*testing.T
	server *ddblocal.Server
	sqs    *sqs.Client
	table  string
	log    buffer

	mu     sync.Mutex
	events []event
	called chan struct{} // signals new events; its buffer holds one signal
}

func newLocal(t *testing.T) *local {
	t.Helper()
	l := &local{T: t, server: ddblocal.ForTest(t), called: make(chan struct{}, 1)}
	names := template.TablesForTest(t, l.server.Client(), "testdata/template.yaml")
	l.table = names["Ledger"]
	mq := elasticmq.ForTest(t)
	l.sqs = mq.Client()
	t.Cleanup(l.server.CloseIdleConnections)
	closeLocal = func() { l.server.CloseIdleConnections(); mq.CloseIdleConnections() }
	return l
}

func (l *local) options(handle func(context.Context, event) (emulator.Result, error), sources ...template.Source) eventsource.Options {
	var streams *dynamodbstreams.Client
	if l.server != nil {
		streams = dynamodbstreams.NewFromConfig(l.server.Config())
	}
	return eventsource.Options{
		Template: &template.Template{Functions: []*template.Function{{LogicalID: "Consumer", Name: "consumer", Sources: sources}}},
		SQS:      l.sqs, Streams: streams, Log: &l.log,
		Invoke: func(ctx context.Context, _ string, payload []byte) (emulator.Result, error) {
			e := event{payload: string(payload)}
			if err := json.Unmarshal(payload, &e); err != nil {
				return emulator.Result{}, err
			}
			l.mu.Lock()
			l.events = append(l.events, e)
			l.mu.Unlock()
			select {
			case l.called <- struct{}{}:
			default:
			}
			return handle(ctx, e)
		},
	}
}

func (l *local) start(handle func(context.Context, event) (emulator.Result, error), sources ...template.Source) {
	l.Helper()
	l.startWith(l.options(handle, sources...))
}

func (l *local) startWith(o eventsource.Options) {
	l.Helper()
	m, err := eventsource.Start(l.Context(), o)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { expect(l, "Close", m.Close(), nil) })
}

func (l *local) source() template.Source {
	s := fromStream()
	s.Name, s.Table = "Ledger", l.table
	return s
}

func (l *local) put(ids ...string) {
	l.Helper()
	for _, id := range ids {
		_, err := l.server.Client().PutItem(l.Context(), &dynamodb.PutItemInput{TableName: aws.String(l.table), Item: item(id)})
		if err != nil {
			l.Fatal(err)
		}
	}
}

func item(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

// until waits until holds returns true for the names of the records in all events, and returns
// these names.
func (l *local) until(holds func(names []string) bool) []string {
	l.Helper()
	for {
		l.mu.Lock()
		var names []string
		for _, e := range l.events {
			names = append(names, strings.Fields(e.names())...)
		}
		l.mu.Unlock()
		if holds(names) {
			return names
		}
		select {
		case <-l.called:
		case <-time.After(20 * time.Second):
			l.Fatalf("got %q; the log:\n%s", names, l.log.String())
		}
	}
}

func count(n int) func([]string) bool { return func(names []string) bool { return len(names) >= n } }

func TestStream_OfDynamoDBLocal(t *testing.T) {
	l := newLocal(t)
	l.put("before")
	latest := l.source()
	latest.FromStart = false
	l.start(succeeds, latest)
	var writes []types.TransactWriteItem
	want := []string{}
	for i := range 5 {
		id := fmt.Sprint("t", i)
		want = append(want, id)
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{TableName: aws.String(l.table), Item: item(id)}})
	}
	if _, err := l.server.Client().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: writes}); err != nil {
		t.Fatal(err)
	}
	l.put("after")
	expect(t, "from LATEST on", l.until(count(6)), append(want, "after"))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, part := range []string{`"eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1"`, `"NewImage":{"id":{"S":"t0"}}`, `"ApproximateCreationDateTime":` + fmt.Sprint(time.Now().Unix())[:4], `"StreamViewType":"NEW_AND_OLD_IMAGES"`} {
		if !strings.Contains(l.events[0].payload, part) {
			t.Errorf("%s lacks %s", l.events[0].payload, part)
		}
	}
}

// The records that were given up can be read from the stream with the shard ID and sequence
// numbers in the message to OnFailure.
func TestStream_OnFailureTellsWhereTheRecordsAre(t *testing.T) {
	l := newLocal(t)
	name := "dead-" + rand.Text()
	dead, err := l.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	l.put("a", "b", "c", "d")
	s := l.source()
	s.Bisects, s.ReportsFailures, s.Retries, s.OnFailure = true, true, 1, head+name
	l.start(reports("b"), s)
	names := l.until(func(names []string) bool {
		return len(names) >= 11 && names[len(names)-1] == "d" // b was given up, and the records after it were delivered
	})
	expect(t, "records", names, strings.Fields("a b c d b c d b b c d"))
	out, err := l.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: dead.QueueUrl, WaitTimeSeconds: 20})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("messages %+v, %v", out, err)
	}
	var told struct {
		DDBStreamBatchInfo struct{ ShardID, StartSequenceNumber, StreamARN string }
	}
	expect(t, "error", json.Unmarshal([]byte(*out.Messages[0].Body), &told), nil)
	where := told.DDBStreamBatchInfo
	client := dynamodbstreams.NewFromConfig(l.server.Config())
	iterator, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(where.StreamARN), ShardId: aws.String(where.ShardID), SequenceNumber: aws.String(where.StartSequenceNumber),
		ShardIteratorType: streamtypes.ShardIteratorTypeAtSequenceNumber,
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator, Limit: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	key, _ := found.Records[0].Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS)
	expect(t, "record", key.Value, "b")
}

// TestStart_WithTheEmulator runs a template's queue and stream with real processes. It also
// checks that the emulator doesn't warn about sources if eventsource delivers them.
func TestStart_WithTheEmulator(t *testing.T) {
	l := newLocal(t)
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./testdata/worker").CombinedOutput(); err != nil {
		t.Fatalf("building the worker: %v\n%s", err, out)
	}
	suffix := "-" + rand.Text() // ElasticMQ may be shared
	sam, err := template.Read("testdata/template.yaml", template.Options{Rename: func(kind, name string) string {
		if kind == "AWS::SQS::Queue" {
			return name + suffix
		}
		return name
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sam.Functions[0].Sources {
		if s.Table != "" {
			sam.Functions[0].Sources[i].Table = l.table
		}
	}
	if err := template.CreateQueues(t.Context(), l.sqs, sam.Queues); err != nil {
		t.Fatal(err)
	}
	var progress buffer
	e, err := emulator.Start(t.Context(), emulator.Options{
		Template: sam, Binary: func(string) string { return bootstrap }, Log: &l.log, Progress: &progress, SourcesDelivered: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { expect(t, "closing the emulator", e.Close(), nil) }()
	expect(t, "announced", progress.String(), "")
	o := l.options(nil)
	o.Template = sam
	o.Invoke = noting(l, e)
	m, err := eventsource.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]*string{}
	for _, q := range sam.Queues {
		found, err := l.sqs.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &q.Name})
		if err != nil {
			t.Fatal(err)
		}
		urls[q.LogicalID] = found.QueueUrl
	}
	for _, body := range []string{"report", "crash", "good"} { // one batch each
		if _, err := l.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: urls["Orders"], MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
		l.until(func(names []string) bool { return slices.Contains(names, body) })
	}
	l.put("item")
	l.until(func(names []string) bool {
		return slices.Contains(names, "item") && times(names, "report") == 2 && times(names, "crash") == 2 && times(names, "good") == 1
	})
	expect(t, "Close", m.Close(), nil)
	for _, queue := range []string{"Orders", "Dead"} {
		expect(t, "left in "+queue, depthOf(t, l.sqs, urls[queue]), depth{})
	}
}

// depthOf returns the number of messages in a queue of ElasticMQ.
func depthOf(t *testing.T, client *sqs.Client, url *string) depth {
	t.Helper()
	out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	count := func(attribute string) int {
		n, err := strconv.Atoi(out.Attributes[attribute])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return depth{Visible: count("ApproximateNumberOfMessages"), InFlight: count("ApproximateNumberOfMessagesNotVisible")}
}

// noting returns an Invoke function that records each event in l and passes it to the emulator's
// function.
func noting(l *local, e *emulator.Emulator) func(context.Context, string, []byte) (emulator.Result, error) {
	return func(ctx context.Context, function string, payload []byte) (emulator.Result, error) {
		note := l.options(func(ctx context.Context, _ event) (emulator.Result, error) { return e.Invoke(ctx, function, payload) })
		return note.Invoke(ctx, function, payload)
	}
}

func times(names []string, name string) int {
	n := 0
	for _, s := range names {
		if s == name {
			n++
		}
	}
	return n
}
