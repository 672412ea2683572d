package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// A queue delivers a batch again after one message of it failed. The other messages are not handled
// again.
func ExampleGuard_SQS() {
	guard := lambdaidem.New(memstore.New())
	broken := true
	consume := guard.SQS(func(_ context.Context, m events.SQSMessage) error {
		if m.Body == "order 2" && broken {
			return errors.New("the warehouse is closed")
		}
		fmt.Println("shipped", m.Body)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(_ context.Context, m events.SQSMessage, err error) { fmt.Println("failed", m.Body+":", err) }
	})

	batch := events.SQSEvent{}
	for _, id := range []string{"1", "2", "3"} {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: id, Body: "order " + id, EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:orders"})
	}
	answer, err := consume(context.Background(), batch)
	fmt.Println(answer, err)
	broken = false
	answer, err = consume(context.Background(), batch)
	fmt.Println(answer, err)
	// Output:
	// shipped order 1
	// failed order 2: the warehouse is closed
	// shipped order 3
	// {[{2}]} <nil>
	// shipped order 2
	// {[]} <nil>
}

// A FIFO queue keeps the order of a message group: messages after a failed one are not handled, and
// the queue delivers them again with it.
func ExampleGuard_SQS_fifo() {
	guard := lambdaidem.New(memstore.New())
	consume := guard.SQS(func(_ context.Context, m events.SQSMessage) error {
		if m.Body == "withdraw" {
			return errors.New("no answer from the bank")
		}
		fmt.Println(m.Body)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(_ context.Context, m events.SQSMessage, err error) {
			fmt.Println(m.Body, "begun:", !errors.Is(err, lambdaidem.ErrNotBegun))
		}
	})
	batch := events.SQSEvent{}
	for i, m := range []struct{ account, body string }{{"alice", "withdraw"}, {"bob", "deposit"}, {"alice", "close the account"}} {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint(i + 1), Body: m.body, EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:ledger.fifo",
			Attributes: map[string]string{"MessageGroupId": m.account}})
	}
	answer, err := consume(context.Background(), batch)
	fmt.Println(answer, err)
	// Output:
	// withdraw begun: true
	// deposit
	// close the account begun: false
	// {[{1} {3}]} <nil>
}

// A key derived from the message stays the same after a redrive, which gives the message a new id.
// The consumer of the dead-letter queue uses the same operation, so it shares the records.
func ExampleBatchOptions() {
	guard := lambdaidem.New(memstore.New())
	charge := func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("charged", m.Body)
		return nil
	}
	byOrder := func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Operation = "charge"
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			var order struct{ ID string }
			err := json.Unmarshal([]byte(m.Body), &order)
			return order.ID, err
		}
	}
	for _, m := range []events.SQSMessage{
		{MessageId: "7d1c", EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:orders", Body: `{"id":"o-17"}`},
		{MessageId: "a3f0", EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:orders-dlq", Body: `{"id":"o-17"}`},
	} {
		answer, err := guard.SQS(charge, byOrder)(context.Background(), events.SQSEvent{Records: []events.SQSMessage{m}})
		fmt.Println(answer, err)
	}
	// Output:
	// charged {"id":"o-17"}
	// {[]} <nil>
	// {[]} <nil>
}

// The publisher sets the key in a message attribute, so that a message that is published again is
// not handled again.
func ExampleGuard_SNS() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.SNS(func(_ context.Context, m events.SNSEventRecord) error {
		fmt.Println("handled", m.SNS.Message)
		return nil
	})
	for _, id := range []string{"first", "published again"} {
		fmt.Println(handle(context.Background(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{
			MessageID: id, TopicArn: "arn:aws:sns:eu-west-1:111122223333:payments", Message: "payment 1",
			MessageAttributes: map[string]any{lambdaidem.MessageKey: map[string]any{"Type": "String", "Value": "payment-1"}},
		}}}}))
	}
	// Output:
	// handled payment 1
	// <nil>
	// <nil>
}

// Two rules that match the same event deliver it twice.
func ExampleGuard_EventBridge() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.EventBridge(func(_ context.Context, e events.EventBridgeEvent) error {
		fmt.Println("handled", e.DetailType)
		return nil
	})
	event := events.EventBridgeEvent{ID: "6a7e8feb-b491-4cf7-a9f1-bf3703467718", Source: "com.example.payments", DetailType: "PaymentMade", Detail: json.RawMessage(`{"payment":"p-1"}`)}
	fmt.Println(handle(context.Background(), event))
	fmt.Println(handle(context.Background(), event))
	// Output:
	// handled PaymentMade
	// <nil>
	// <nil>
}

// A stream continues from the lowest sequence number that was reported. Later records that are done
// already are delivered again, but not handled again.
func ExampleGuard_Kinesis() {
	guard := lambdaidem.New(memstore.New())
	broken := true
	handle := guard.Kinesis(func(_ context.Context, r events.KinesisEventRecord) error {
		if r.Kinesis.SequenceNumber == "101" && broken {
			return errors.New("not now")
		}
		fmt.Println("handled", r.Kinesis.SequenceNumber)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.KinesisEventRecord]) {
		o.OnFailure = func(context.Context, events.KinesisEventRecord, error) {}
	})
	batch := events.KinesisTimeWindowEvent{}
	for i, account := range []string{"alice", "bob", "alice"} {
		number := fmt.Sprint(100 + i)
		batch.Records = append(batch.Records, events.KinesisEventRecord{EventID: "shardId-000000000000:" + number, EventSourceArn: "arn:aws:kinesis:eu-west-1:111122223333:stream/ledger",
			Kinesis: events.KinesisRecord{PartitionKey: account, SequenceNumber: number}})
	}
	answer, err := handle(context.Background(), batch)
	fmt.Println(answer, err)
	broken = false
	batch.Records = batch.Records[1:] // from 101 on
	answer, err = handle(context.Background(), batch)
	fmt.Println(answer, err)
	// Output:
	// handled 100
	// handled 102
	// {[{101}]} <nil>
	// handled 101
	// {[]} <nil>
}

// A table's stream delivers the changes that a writer made, as an outbox does.
func ExampleGuard_DynamoDBStream() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.DynamoDBStream(func(_ context.Context, r events.DynamoDBEventRecord) error {
		fmt.Println("a receipt for", r.Change.Keys["id"].String())
		return nil
	})
	batch := events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{EventID: "c4ca4238a0b923820dcc509a6f75849b", EventName: "INSERT",
		EventSourceArn: "arn:aws:dynamodb:eu-west-1:111122223333:table/payments/stream/2026-01-01T00:00:00.000",
		Change:         events.DynamoDBStreamRecord{SequenceNumber: "111", Keys: map[string]events.DynamoDBAttributeValue{"id": events.NewStringAttribute("payment 1")}}}}}}

	for range 2 {
		answer, err := handle(context.Background(), batch)
		fmt.Println(answer, err)
	}
	// Output:
	// a receipt for payment 1
	// {[]} <nil>
	// {[]} <nil>
}

// A partition keeps its order: what comes after a failure is not begun, and comes back
// with it. The response names the partition and the offset of each.
func ExampleGuard_Kafka() {
	guard := lambdaidem.New(memstore.New())
	broken := true
	handle := guard.Kafka(func(_ context.Context, r events.KafkaRecord) error {
		value, err := base64.StdEncoding.DecodeString(r.Value)
		if err != nil {
			return err
		}
		if string(value) == "order 2" && broken {
			return errors.New("the warehouse is closed")
		}
		fmt.Println("shipped", string(value))
		return nil
	}, func(o *lambdaidem.BatchOptions[events.KafkaRecord]) {
		o.OnFailure = func(context.Context, events.KafkaRecord, error) {}
	})
	record := func(partition, offset int64, value string) events.KafkaRecord {
		return events.KafkaRecord{Topic: "orders", Partition: partition, Offset: offset, Value: base64.StdEncoding.EncodeToString([]byte(value))}
	}
	batch := events.KafkaEvent{
		EventSourceARN: "arn:aws:kafka:eu-west-1:111122223333:cluster/shop/e9f754c6-d29a-4430-a7db-958a19fd2c54-4",
		Records: map[string][]events.KafkaRecord{
			"orders-0": {record(0, 15, "order 1"), record(0, 16, "order 2"), record(0, 17, "order 3")},
			"orders-1": {record(1, 8, "order 4")},
		},
	}
	answer, err := handle(context.Background(), batch)
	fmt.Println(answer, err)
	broken = false
	answer, err = handle(context.Background(), batch)
	fmt.Println(answer, err)
	// Output:
	// shipped order 1
	// shipped order 4
	// {[{{orders-0 16}} {{orders-0 17}}]} <nil>
	// shipped order 2
	// shipped order 3
	// {[]} <nil>
}

// S3 may send a notification twice. The object's key arrives encoded as in a URL.
func ExampleGuard_S3() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.S3(func(_ context.Context, r events.S3EventRecord) error {
		fmt.Println(r.EventName, r.S3.Object.URLDecodedKey)
		return nil
	})
	var event events.S3Event
	err := json.Unmarshal([]byte(`{"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-01-02T12:45:07.123Z",
		"s3": {"bucket": {"name": "invoices", "arn": "arn:aws:s3:::invoices"}, "object": {"key": "may+2026.pdf", "size": 1024, "eTag": "d41d8cd9", "sequencer": "0055AED6DCD90281E5"}}}]}`), &event)
	fmt.Println(err)
	for range 2 {
		fmt.Println(handle(context.Background(), event))
	}
	// Output:
	// <nil>
	// ObjectCreated:Put may 2026.pdf
	// <nil>
	// <nil>
}

// A notification that S3 sends to a queue twice is two messages, with two ids. A key made
// of the notification makes them one.
func ExampleS3Key() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.SQS(func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("handled", m.MessageId)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			var e events.S3Event
			if err := json.Unmarshal([]byte(m.Body), &e); err != nil {
				return "", err
			}
			if len(e.Records) != 1 { // such as the test that S3 sends when notifications are configured
				return m.MessageId, nil
			}
			return lambdaidem.S3Key(e.Records[0]), nil
		}
	})
	const body = `{"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "invoices"}, "object": {"key": "may+2026.pdf", "eTag": "d41d8cd9", "sequencer": "0055AED6DCD90281E5"}}}]}`
	var batch events.SQSEvent
	for _, id := range []string{"7d1c", "a3f0"} {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: id, EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:uploads", Body: body})
	}
	fmt.Println(handle(context.Background(), batch))
	// Output:
	// handled 7d1c
	// {[]} <nil>
}

// A broker takes no list of failures: an error brings the whole batch back. What was done
// is not done again.
func ExampleGuard_ActiveMQ() {
	guard := lambdaidem.New(memstore.New())
	broken := true
	handle := guard.ActiveMQ(func(_ context.Context, m events.ActiveMQMessage) error {
		if m.MessageID == "ID:2" && broken {
			return errors.New("the warehouse is closed")
		}
		fmt.Println("shipped", m.MessageID)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.ActiveMQMessage]) {
		o.OnFailure = func(context.Context, events.ActiveMQMessage, error) {}
	})
	batch := events.ActiveMQEvent{EventSourceARN: "arn:aws:mq:eu-west-1:111122223333:broker:shop:b-1"}
	for _, id := range []string{"ID:1", "ID:2", "ID:3"} {
		batch.Messages = append(batch.Messages, events.ActiveMQMessage{MessageID: id, Destination: events.ActiveMQDestination{PhysicalName: "orders"}})
	}
	fmt.Println(handle(context.Background(), batch))
	broken = false
	fmt.Println(handle(context.Background(), batch))
	// Output:
	// shipped ID:1
	// shipped ID:3
	// 1 of 3 messages failed; the first: the warehouse is closed
	// shipped ID:2
	// <nil>
}

// RabbitMQ gives messages no ids. The publisher sets message_id, or the header
// x-idempotency-key.
func ExampleGuard_RabbitMQ() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.RabbitMQ(func(ctx context.Context, _ events.RabbitMQMessage) error {
		fmt.Println("shipped", lambdaidem.Key(ctx))
		return nil
	})
	var event events.RabbitMQEvent
	err := json.Unmarshal([]byte(`{"eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:shop:b-1", "rmqMessagesByQueue": {"orders::/": [
		{"basicProperties": {"messageId": "order-17"}, "redelivered": false, "data": "eyJvcmRlciI6IDE3fQ=="}]}}`), &event)
	fmt.Println(err)
	for range 2 {
		fmt.Println(handle(context.Background(), event))
	}
	// Output:
	// <nil>
	// shipped order-17
	// <nil>
	// <nil>
}

// A change stream delivers a batch again after an error.
func ExampleGuard_DocumentDB() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.DocumentDB(func(_ context.Context, c lambdaidem.DocumentDBChange) error {
		fmt.Println(c.OperationType, string(c.DocumentKey))
		return nil
	})
	var event lambdaidem.DocumentDBEvent
	err := json.Unmarshal([]byte(`{"eventSourceArn": "arn:aws:rds:eu-west-1:111122223333:cluster:shop", "events": [
		{"event": {"_id": {"_data": "0163eeb6e7"}, "operationType": "insert", "ns": {"db": "shop", "coll": "orders"}, "documentKey": {"_id": 17}, "fullDocument": {"_id": 17}}}]}`), &event)
	fmt.Println(err)
	for range 2 {
		fmt.Println(handle(context.Background(), event))
	}
	// Output:
	// <nil>
	// insert {"_id": 17}
	// <nil>
	// <nil>
}
