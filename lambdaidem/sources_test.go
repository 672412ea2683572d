package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// msg is a message of any source, with the parts that the rules V2 and V3 use.
type msg struct {
	id, group, body string
	key             string            // in the sender's attribute, if the source has attributes
	attrs           map[string]string // other attributes
	received        int
}

// want contains the BatchOptions that tests set, for any type of message.
type want struct {
	key                   func(body string) (string, error)
	operation, queue      string
	concurrency           int
	stopBatch, wholeBatch bool
	counted               []string // names of attributes
	onFailure             func(body string, err error)
	wait, timeout         time.Duration
	discard               func(body string, err error) bool
}

// batchSource is one kind of event: how AWS sends it, and how the guard handles it.
type batchSource struct {
	name           string
	ordered, async bool
	partitioned    bool // an event lists the messages of one group after those of another
	attributes     bool
	event          func(arn string, all []msg) any
	identifier     func(m msg) any                                                              // the itemIdentifier of a message; nil if that is its id
	guard          func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any // returns a Lambda handler
}

func applied[M any](w want, body func(M) string) func(*lambdaidem.BatchOptions[M]) {
	return func(o *lambdaidem.BatchOptions[M]) {
		if w.key != nil {
			o.Key = func(_ context.Context, m M) (string, error) { return w.key(body(m)) }
		}
		if w.onFailure != nil {
			o.OnFailure = func(_ context.Context, m M, err error) { w.onFailure(body(m), err) }
		} else {
			o.OnFailure = func(context.Context, M, error) {} // suppresses the log
		}
		o.Operation, o.Concurrency, o.StopBatch, o.WholeBatch = w.operation, w.concurrency, w.stopBatch, w.wholeBatch
		o.FingerprintAttributes = w.counted
		o.Wait, o.Timeout = w.wait, w.timeout
		if w.discard != nil {
			o.Discard = func(_ context.Context, m M, err error) bool { return w.discard(body(m), err) }
		}
	}
}

func handlerOf[M any](h func(context.Context, string) error, body func(M) string) func(context.Context, M) error {
	return func(ctx context.Context, m M) error { return h(ctx, body(m)) }
}

type object = map[string]any

func sqs(fifo bool) batchSource {
	s := batchSource{name: "SQS", ordered: fifo, attributes: true}
	suffix := ""
	if fifo {
		s.name, suffix = "SQS FIFO", ".fifo"
	}
	s.event = func(arn string, all []msg) any {
		var records []object
		for _, m := range all {
			attributes := object{"ApproximateReceiveCount": fmt.Sprint(m.received), "SentTimestamp": "1764000000000", "SenderId": "AIDAEXAMPLE", "ApproximateFirstReceiveTimestamp": fmt.Sprint(1764000000000 + m.received)}
			attributes["MessageGroupId"] = m.group // also for a standard queue, where it is a tenant of a fair queue
			if fifo {
				attributes["SequenceNumber"], attributes["MessageDeduplicationId"] = "18849496460467696128", m.id
			}
			sent := object{}
			for name, v := range m.attrs {
				sent[name] = object{"stringValue": v, "stringListValues": []string{}, "binaryListValues": []string{}, "dataType": "String"}
			}
			if m.key != "" {
				sent[lambdaidem.MessageKey] = object{"stringValue": m.key, "stringListValues": []string{}, "binaryListValues": []string{}, "dataType": "String"}
			}
			records = append(records, object{"messageId": m.id, "receiptHandle": fmt.Sprint("handle-", m.id, m.received), "body": m.body, "md5OfBody": "fce0ea8dd236ccb3ed9b37dae260836f",
				"attributes": attributes, "messageAttributes": sent, "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:" + arn + suffix, "awsRegion": "eu-west-1"})
		}
		return object{"Records": records}
	}
	s.guard = func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
		body := func(m events.SQSMessage) string { return m.Body }
		return g.SQS(handlerOf(h, body), applied(w, body))
	}
	return s
}

func snsSource() batchSource {
	return batchSource{name: "SNS", async: true, attributes: true,
		event: func(arn string, all []msg) any {
			var records []object
			for _, m := range all {
				sent := object{}
				for name, v := range m.attrs {
					sent[name] = object{"Type": "String", "Value": v}
				}
				if m.key != "" {
					sent[lambdaidem.MessageKey] = object{"Type": "String", "Value": m.key}
				}
				records = append(records, object{"EventVersion": "1.0", "EventSource": "aws:sns", "EventSubscriptionArn": "arn:aws:sns:eu-west-1:111122223333:" + arn + ":21be56ed-a058-49f5-8c98-aedd2564c486",
					"Sns": object{"SignatureVersion": "1", "Timestamp": fmt.Sprintf("2026-01-02T12:45:%02d.000Z", m.received), "Signature": "EXAMPLE", "SigningCertUrl": "https://sns.eu-west-1.amazonaws.com/x.pem", "MessageId": m.id,
						"Message": m.body, "MessageAttributes": sent, "Type": "Notification", "UnsubscribeUrl": "https://sns.eu-west-1.amazonaws.com/", "TopicArn": "arn:aws:sns:eu-west-1:111122223333:" + arn, "Subject": "s"}})
			}
			return object{"Records": records}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(m events.SNSEventRecord) string { return m.SNS.Message }
			return g.SNS(handlerOf(h, body), applied(w, body))
		}}
}

func eventBridgeSource() batchSource {
	return batchSource{name: "EventBridge", async: true,
		event: func(arn string, all []msg) any {
			if len(all) != 1 {
				panic("EventBridge sends one event at a time")
			}
			detail := object{"body": all[0].body}
			if all[0].key != "" {
				detail[lambdaidem.MessageKey] = all[0].key
			}
			return object{"version": "0", "id": all[0].id, "detail-type": "PaymentMade", "source": arn, "account": "111122223333", "time": fmt.Sprintf("2026-01-02T12:45:%02dZ", all[0].received),
				"region": "eu-west-1", "resources": []string{"arn:aws:dynamodb:eu-west-1:111122223333:table/payments"}, "detail": detail}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(m events.EventBridgeEvent) string {
				var detail struct{ Body string }
				_ = json.Unmarshal(m.Detail, &detail)
				return detail.Body
			}
			return g.EventBridge(handlerOf(h, body), applied(w, body))
		}}
}

func kinesisSource() batchSource {
	return batchSource{name: "Kinesis", ordered: true,
		event: func(arn string, all []msg) any {
			var records []object
			for _, m := range all {
				records = append(records, object{"kinesis": object{"kinesisSchemaVersion": "1.0", "partitionKey": m.group, "sequenceNumber": m.id, "data": base64.StdEncoding.EncodeToString([]byte(m.body)), "approximateArrivalTimestamp": 1764000000.5},
					"eventSource": "aws:kinesis", "eventVersion": "1.0", "eventID": "shardId-000000000006:" + m.id, "eventName": "aws:kinesis:record", "invokeIdentityArn": "arn:aws:iam::111122223333:role/r", "awsRegion": "eu-west-1",
					"eventSourceARN": "arn:aws:kinesis:eu-west-1:111122223333:stream/" + arn})
			}
			return object{"Records": records}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(m events.KinesisEventRecord) string { return string(m.Kinesis.Data) }
			return g.Kinesis(handlerOf(h, body), applied(w, body))
		}}
}

func dynamoDBSource() batchSource {
	return batchSource{name: "DynamoDB Streams", ordered: true,
		event: func(arn string, all []msg) any {
			var records []object
			for _, m := range all {
				keys := object{"id": object{"S": m.group}}
				records = append(records, object{"eventID": "e-" + m.id, "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
					"dynamodb": object{"ApproximateCreationDateTime": 1764000000 + m.received, "Keys": keys, "OldImage": object{"id": keys["id"]}, "NewImage": object{"id": keys["id"], "body": object{"S": m.body}, "n": object{"N": "9007199254740993"}},
						"SequenceNumber": m.id, "SizeBytes": 26, "StreamViewType": "NEW_AND_OLD_IMAGES"},
					"eventSourceARN": "arn:aws:dynamodb:eu-west-1:111122223333:table/" + arn + "/stream/2026-01-01T00:00:00.000"})
			}
			return object{"Records": records}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(m events.DynamoDBEventRecord) string { return m.Change.NewImage["body"].String() }
			return g.DynamoDBStream(handlerOf(h, body), applied(w, body))
		}}
}

// s3Source sends notifications of S3. The body of a message becomes the key of the object.
func s3Source() batchSource {
	return batchSource{name: "S3", async: true,
		event: func(arn string, all []msg) any {
			var records []object
			for _, m := range all {
				records = append(records, object{"eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1", "eventTime": fmt.Sprintf("2026-01-02T12:45:%02d.000Z", m.received), "eventName": "ObjectCreated:Put",
					"responseElements": object{"x-amz-request-id": fmt.Sprint("R", m.received)},
					"s3": object{"bucket": object{"name": arn, "arn": "arn:aws:s3:::" + arn},
						"object": object{"key": url.QueryEscape(m.body), "size": 1, "eTag": "d41d8cd98f00b204e9800998ecf8427e", "sequencer": fmt.Sprintf("00%X", m.id)}}})
			}
			return object{"Records": records}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(r events.S3EventRecord) string { return r.S3.Object.URLDecodedKey }
			return g.S3(handlerOf(h, body), applied(w, body))
		}}
}

// The sources that take no list of failures receive one message at a time, like asynchronous
// sources.

func activeMQSource() batchSource {
	return batchSource{name: "ActiveMQ", async: true, attributes: true,
		event: func(arn string, all []msg) any {
			var messages []object
			for _, m := range all {
				properties := object{}
				for name, v := range m.attrs {
					properties[name] = v
				}
				if m.key != "" {
					properties[lambdaidem.MessageKey] = m.key
				}
				messages = append(messages, object{"messageID": m.id, "messageType": "jms/text-message", "redelivered": m.received > 0, "brokerOutTime": 1764000000944 + m.received, "destination": object{"physicalName": arn},
					"data": base64.StdEncoding.EncodeToString([]byte(m.body)), "properties": properties})
			}
			return object{"eventSource": "aws:mq", "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:b:b-1", "messages": messages}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(m events.ActiveMQMessage) string { return decoded(m.Data) }
			return g.ActiveMQ(handlerOf(h, body), applied(w, body))
		}}
}

func rabbitMQSource() batchSource {
	return batchSource{name: "RabbitMQ", async: true, attributes: true,
		event: func(arn string, all []msg) any {
			var messages []object
			for _, m := range all {
				headers := object{}
				for name, v := range m.attrs {
					headers[name] = object{"bytes": signedBytes(v)}
				}
				if m.key != "" {
					headers[lambdaidem.MessageKey] = object{"bytes": signedBytes(m.key)}
				}
				messages = append(messages, object{"basicProperties": object{"messageId": m.id, "headers": headers}, "redelivered": m.received > 0, "data": base64.StdEncoding.EncodeToString([]byte(m.body))})
			}
			return object{"eventSource": "aws:rmq", "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:b:b-1", "rmqMessagesByQueue": object{arn + "::/": messages}}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(m events.RabbitMQMessage) string { return decoded(m.Data) }
			return g.RabbitMQ(handlerOf(h, body), applied(w, body))
		}}
}

func documentDBSource() batchSource {
	return batchSource{name: "DocumentDB", async: true,
		event: func(arn string, all []msg) any {
			var changes []object
			for _, m := range all {
				changes = append(changes, object{"event": object{"_id": object{"_data": m.id}, "clusterTime": object{"$timestamp": object{"t": 1764000000, "i": m.received}}, "documentKey": object{"_id": m.group},
					"fullDocument": object{"_id": m.group, "body": m.body}, "ns": object{"db": "shop", "coll": arn}, "operationType": "replace"}})
			}
			return object{"eventSource": "aws:docdb", "eventSourceArn": "arn:aws:rds:eu-west-1:111122223333:cluster:shop", "events": changes}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(c lambdaidem.DocumentDBChange) string {
				var document struct{ Body string }
				_ = json.Unmarshal(c.FullDocument, &document)
				return document.Body
			}
			return g.DocumentDB(handlerOf(h, body), applied(w, body))
		}}
}

// signedBytes returns the bytes of a text as signed numbers, like the bytes of Java.
func signedBytes(text string) []int8 {
	all := []int8{}
	for _, b := range []byte(text) {
		all = append(all, int8(b))
	}
	return all
}

func decoded(base64Text string) string {
	text, _ := base64.StdEncoding.DecodeString(base64Text)
	return string(text)
}

// kafkaSource sends records of Kafka. Each group has a partition of its own.
func kafkaSource() batchSource {
	offset := func(m msg) int {
		if n, err := strconv.Atoi(m.id); err == nil {
			return n
		}
		return 1000 + int(crc32.ChecksumIEEE([]byte(m.id))%1000)
	}
	partition := func(m msg) int {
		if n, err := strconv.Atoi(m.group); err == nil {
			return n
		}
		return strings.Index("abcdefgh", m.group)
	}
	return batchSource{name: "Kafka", ordered: true, partitioned: true, attributes: true,
		identifier: func(m msg) any { return object{"partition": fmt.Sprint("orders-", partition(m)), "offset": offset(m)} },
		event: func(arn string, all []msg) any {
			records := map[string][]object{}
			for _, m := range all {
				topic := "orders"
				if m.id == "" {
					topic = "" // nothing else leaves a record without a name
				}
				headers := []object{}
				header := func(name, value string) { headers = append(headers, object{name: signedBytes(value)}) }
				for _, name := range slices.Sorted(maps.Keys(m.attrs)) {
					header(name, m.attrs[name])
				}
				if m.key != "" {
					header(lambdaidem.MessageKey, m.key)
				}
				name := fmt.Sprint("orders-", partition(m))
				records[name] = append(records[name], object{"topic": topic, "partition": partition(m), "offset": offset(m), "timestamp": 1764000000000, "timestampType": "CREATE_TIME",
					"key": nil, "value": base64.StdEncoding.EncodeToString([]byte(m.body)), "headers": headers})
			}
			return object{"eventSource": "aws:kafka", "eventSourceArn": "arn:aws:kafka:eu-west-1:111122223333:cluster/" + arn + "/e9f754c6-d29a-4430-a7db-958a19fd2c54-4", "bootstrapServers": "b-1.example.com:9092", "records": records}
		},
		guard: func(g *lambdaidem.Guard, h func(context.Context, string) error, w want) any {
			body := func(r events.KafkaRecord) string { return decoded(r.Value) }
			return g.Kafka(handlerOf(h, body), applied(w, body))
		}}
}

var batchSources = []batchSource{sqs(false), sqs(true), snsSource(), eventBridgeSource(), kinesisSource(), dynamoDBSource(), kafkaSource(), s3Source(),
	activeMQSource(), rabbitMQSource(), documentDBSource()}

// arranged returns the messages in the order in which an event of the source lists them.
func (s batchSource) arranged(all []msg) []msg {
	if s.partitioned {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b msg) int { return strings.Compare(a.group, b.group) })
	}
	return all
}

// bodiesOf returns the bodies of the messages.
func bodiesOf(all []msg) []string {
	var bodies []string
	for _, m := range all {
		bodies = append(bodies, m.body)
	}
	return bodies
}

// consumer is a guarded function with one source.
type consumer struct {
	batchSource
	queue  string
	invoke lambda.Handler
}

// behind returns a consumer of the source that guards h.
func (s batchSource) behind(g *lambdaidem.Guard, h func(context.Context, string) error, w want) *consumer {
	if w.queue == "" {
		w.queue = "orders"
	}
	return &consumer{s, w.queue, lambda.NewHandler(s.guard(g, h, w))}
}

// deliver sends messages as AWS does, and returns the ids of those that failed. The error is that
// of the whole batch.
func (c *consumer) deliver(ctx context.Context, t testing.TB, all ...msg) ([]string, error) {
	t.Helper()
	if c.async { // one by one
		var failed []string
		for _, m := range all {
			if _, err := c.send(ctx, t, m); err != nil {
				failed = append(failed, m.id)
			}
		}
		return failed, nil
	}
	return c.send(ctx, t, all...)
}

func (c *consumer) send(ctx context.Context, t testing.TB, all ...msg) ([]string, error) {
	t.Helper()
	payload, err := json.Marshal(c.event(c.queue, all))
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.invoke.Invoke(ctx, payload)
	if err != nil || c.async {
		return nil, err
	}
	var answer struct {
		BatchItemFailures []struct {
			ItemIdentifier any `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.BatchItemFailures == nil {
		t.Fatalf("the answer is %s, %v; want a list of failures", out, err)
	}
	idOf := map[string]string{}
	for _, m := range all {
		idOf[fmt.Sprint(c.identifierOf(m))] = m.id
	}
	var failed []string
	for _, f := range answer.BatchItemFailures {
		id, known := idOf[fmt.Sprint(f.ItemIdentifier)]
		if !known {
			t.Fatalf("the answer is %s, which names a message that was not sent", out)
		}
		failed = append(failed, id)
	}
	return failed, nil
}

func (s batchSource) identifierOf(m msg) any {
	if s.identifier == nil {
		return m.id
	}
	return s.identifier(m)
}

// wantFailed delivers the messages and checks that exactly the given ids are reported as failed.
func (c *consumer) wantFailed(t testing.TB, all []msg, want ...string) {
	t.Helper()
	failed, err := c.deliver(t.Context(), t, all...)
	if err != nil || !slices.Equal(failed, want) {
		t.Errorf("%s: reported %v, %v; want %v", c.name, failed, err, want)
	}
}

// effects counts how often each body was handled. Handling a body can be made to fail.
type effects struct {
	fail func(body string, run int) error
	all  []string
}

func (e *effects) handle(_ context.Context, body string) error {
	run := 1
	for _, b := range e.all {
		if b == body {
			run++
		}
	}
	if e.fail != nil {
		if err := e.fail(body, run); err != nil {
			e.all = append(e.all, "failed "+body)
			return err
		}
	}
	e.all = append(e.all, body)
	return nil
}

func (e *effects) want(t testing.TB, name string, want ...string) {
	t.Helper()
	if !slices.Equal(e.all, want) {
		t.Errorf("%s: handled %q; want %q", name, e.all, want)
	}
}

var errBroken = errors.New("broken")

// failing returns a function that fails for the given bodies while *on is true.
func failing(on *bool, bodies ...string) func(string, int) error {
	return func(body string, _ int) error {
		if *on && slices.Contains(bodies, body) {
			return errBroken
		}
		return nil
	}
}

// batchOf returns messages for the given texts of the form "id group", in the same order.
func batchOf(texts ...string) []msg {
	var all []msg
	for _, text := range texts {
		id, group, _ := strings.Cut(text, " ")
		all = append(all, msg{id: id, group: group, body: id})
	}
	return all
}
