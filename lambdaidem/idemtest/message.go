package idemtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Message is a message of a queue, topic, event bus or stream. [SQS], [SNS], [EventBridge],
// [Kinesis], [DynamoDBStream] and [Kafka] build events from messages, in the form that AWS
// sends.
type Message struct {
	// ID is the id that the source gives the message. It is the same in each delivery.
	// Default: message-1, message-2 and so on, by the message's position in the event.
	ID string
	// Key is the idempotency key that the sender put on the message, under the name
	// [lambdaidem.MessageKey]. Default: none. Kinesis and DynamoDBStream ignore it,
	// because their records have no attributes.
	Key string
	// Group is the message's group. The source keeps the messages of a group in order. The group is
	// the MessageGroupId of a FIFO queue, the partition key of a Kinesis record, the key of a Kafka
	// record, or the id of the item in a DynamoDB table. Default: "group".
	Group string
	// Body is the text of the message. For EventBridge it is the detail, a JSON object.
	// For DynamoDBStream it is the attribute "body" of the item's new image.
	Body string
	// Attributes are message attributes of type String (SQS, SNS) or record headers (Kafka), in
	// addition to Key. The other sources ignore them.
	Attributes map[string]string
	// Receives is the number of deliveries so far, including this one. Only SQS events
	// include it. Default: 1.
	Receives int
}

// Parts of the ARNs in events: an ARN is arnHead, the service, arnTail and the resource.
const (
	region  = "us-east-1"
	arnHead = "arn:aws:"
	arnTail = ":" + region + ":" + accountID + ":"
)

// sentAt is the time at which every message was sent.
var sentAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func withMessageDefaults(all []Message) []Message {
	out := make([]Message, len(all))
	for i, m := range all {
		if m.ID == "" {
			m.ID = fmt.Sprintf("message-%d", i+1)
		}
		if m.Group == "" {
			m.Group = "group"
		}
		m.Receives = max(m.Receives, 1)
		out[i] = m
	}
	return out
}

// attributes returns the message attributes, including the idempotency key.
func (m Message) attributes() map[string]string {
	all := make(map[string]string, len(m.Attributes)+1)
	for name, value := range m.Attributes {
		all[name] = value
	}
	if m.Key != "" {
		all[lambdaidem.MessageKey] = m.Key
	}
	return all
}

// SQS returns an event with the messages, from the queue with the given name. A queue whose name
// ends in .fifo is a FIFO queue.
func SQS(queue string, messages ...Message) events.SQSEvent {
	event := events.SQSEvent{Records: []events.SQSMessage{}}
	for i, m := range withMessageDefaults(messages) {
		r := events.SQSMessage{MessageId: m.ID, ReceiptHandle: fmt.Sprintf("receipt-%s-%d", m.ID, m.Receives), Body: m.Body,
			EventSource: "aws:sqs", EventSourceARN: arnHead + "sqs" + arnTail + queue, AWSRegion: region, MessageAttributes: map[string]events.SQSMessageAttribute{}}
		millis := fmt.Sprint(sentAt.UnixMilli())
		r.Attributes = map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.Receives), "SentTimestamp": millis, "ApproximateFirstReceiveTimestamp": millis, "SenderId": "AIDAEXAMPLE"}
		if strings.HasSuffix(queue, ".fifo") {
			r.Attributes["MessageGroupId"], r.Attributes["MessageDeduplicationId"], r.Attributes["SequenceNumber"] = m.Group, m.ID, sequence(i)
		}
		for name, value := range m.attributes() {
			r.MessageAttributes[name] = events.SQSMessageAttribute{DataType: "String", StringValue: &value, StringListValues: []string{}, BinaryListValues: [][]byte{}}
		}
		event.Records = append(event.Records, r)
	}
	return event
}

// sequence returns the sequence number of the i-th message. It increases with i.
func sequence(i int) string { return fmt.Sprintf("4959033827149025660855969253836%010d", i) }

// SNS returns an event with the message m from the topic with the given name.
func SNS(topic string, m Message) events.SNSEvent {
	m = withMessageDefaults([]Message{m})[0]
	arn := arnHead + "sns" + arnTail + topic
	all := map[string]any{}
	for name, value := range m.attributes() {
		all[name] = map[string]any{"Type": "String", "Value": value}
	}
	return events.SNSEvent{Records: []events.SNSEventRecord{{
		EventVersion: "1.0", EventSource: "aws:sns", EventSubscriptionArn: arn + ":11111111-2222-3333-4444-555555555555",
		SNS: events.SNSEntity{Type: "Notification", MessageID: m.ID, TopicArn: arn, Message: m.Body, MessageAttributes: all, Timestamp: sentAt, SignatureVersion: "1"},
	}}}
}

// EventBridge returns an event of an event bus. The detail of the event is the message's Body,
// which must be a JSON object; otherwise EventBridge panics. If the message has a Key, the detail
// also has the member [lambdaidem.MessageKey] with this Key.
func EventBridge(source, detailType string, m Message) events.EventBridgeEvent {
	m = withMessageDefaults([]Message{m})[0]
	detail := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(m.Body), &detail); err != nil {
		panic("idemtest: EventBridge: Message.Body is no JSON object: " + err.Error())
	}
	body := json.RawMessage(m.Body)
	if m.Key != "" {
		detail[lambdaidem.MessageKey] = mustJSON(m.Key)
		body = mustJSON(detail)
	}
	return events.EventBridgeEvent{Version: "0", ID: m.ID, Source: source, DetailType: detailType, AccountID: accountID, Region: region, Time: sentAt, Resources: []string{}, Detail: body}
}

// Kinesis returns an event of the data stream with the given name, with a record for each message.
func Kinesis(stream string, messages ...Message) events.KinesisTimeWindowEvent {
	event := events.KinesisTimeWindowEvent{KinesisEvent: events.KinesisEvent{Records: []events.KinesisEventRecord{}}}
	for i, m := range withMessageDefaults(messages) {
		event.Records = append(event.Records, events.KinesisEventRecord{
			EventID: "shardId-000000000000:" + m.ID, EventName: "aws:kinesis:record", EventSource: "aws:kinesis", EventVersion: "1.0", AwsRegion: region, EventSourceArn: arnHead + "kinesis" + arnTail + "stream/" + stream,
			Kinesis: events.KinesisRecord{PartitionKey: m.Group, SequenceNumber: sequence(i), Data: []byte(m.Body), KinesisSchemaVersion: "1.0", ApproximateArrivalTimestamp: events.SecondsEpochTime{Time: sentAt}},
		})
	}
	return event
}

// DynamoDBStream returns an event of the stream of the table with the given name. Each message
// becomes the record of an item that was inserted. The item's partition key is its
// attribute "id".
func DynamoDBStream(table string, messages ...Message) events.DynamoDBTimeWindowEvent {
	event := events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{}}}
	for i, m := range withMessageDefaults(messages) {
		id := events.NewStringAttribute(m.Group)
		event.Records = append(event.Records, events.DynamoDBEventRecord{
			EventID: m.ID, EventName: "INSERT", EventSource: "aws:dynamodb", EventVersion: "1.1", AWSRegion: region, EventSourceArn: arnHead + "dynamodb" + arnTail + "table/" + table + "/stream/2026-01-01T00:00:00.000",
			Change: events.DynamoDBStreamRecord{ApproximateCreationDateTime: events.SecondsEpochTime{Time: sentAt}, SequenceNumber: sequence(i), StreamViewType: "NEW_AND_OLD_IMAGES",
				Keys:     map[string]events.DynamoDBAttributeValue{"id": id},
				NewImage: map[string]events.DynamoDBAttributeValue{"id": id, "body": events.NewStringAttribute(m.Body)}},
		})
	}
	return event
}

// Kafka returns an event of the topic with the given name, in an Amazon MSK cluster. A message's
// group is its Kafka key: all messages of a group are in the same partition, and a partition may
// have messages of several groups. An event lists the messages partition by partition. A message's
// offset is derived from its ID, so that it is the same in each event that has the message.
func Kafka(topic string, messages ...Message) events.KafkaEvent {
	event := events.KafkaEvent{EventSource: "aws:kafka", EventSourceARN: arnHead + "kafka" + arnTail + "cluster/test/11111111-2222-3333-4444-555555555555-1",
		BootstrapServers: "b-1.example.com:9092", Records: map[string][]events.KafkaRecord{}}
	for _, m := range withMessageDefaults(messages) {
		r := events.KafkaRecord{Topic: topic, Partition: int64(crc32.ChecksumIEEE([]byte(m.Group)) % 100), Offset: int64(crc32.ChecksumIEEE([]byte(m.ID))),
			Timestamp: events.MilliSecondsEpochTime{Time: sentAt}, TimestampType: "CREATE_TIME", Headers: []map[string]events.JSONNumberBytes{},
			Key: base64.StdEncoding.EncodeToString([]byte(m.Group)), Value: base64.StdEncoding.EncodeToString([]byte(m.Body))}
		all := m.attributes()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			r.Headers = append(r.Headers, map[string]events.JSONNumberBytes{name: []byte(all[name])})
		}
		partition := fmt.Sprintf("%s-%d", topic, r.Partition)
		event.Records[partition] = append(event.Records[partition], r)
	}
	return event
}

func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("idemtest: " + err.Error())
	}
	return text
}
