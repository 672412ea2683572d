package lambdaidem

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Kafka guards a handler of the records of Kafka topics, in an Amazon MSK cluster or in a
// self-managed Apache Kafka cluster. Records of the same partition keep their order: after one of
// them has failed, the handler does not run for later records of that partition, and these are
// reported as failed too. The handler does not run again for records that it has handled.
//
// The event source mapping needs ReportBatchItemFailures, which Lambda offers for Kafka only in
// provisioned mode (AWS Lambda, "Configuring error handling controls for Kafka event sources"). For
// any other mapping, set BatchOptions.WholeBatch. Otherwise Lambda treats a response that lists
// failures as a success, and the failed records are lost.
//
// A partition makes no progress past a record that fails. By default, Lambda retries the record
// until the topic deletes it, or at most 10 times if the mapping has a destination for failures. If
// another invocation is still handling a record, this invocation waits for that invocation; see
// [Guard.Kinesis].
//
// The default key is the value of the record's header [MessageKey]. A record without that header is
// identified by its topic, partition, offset and timestamp.
//
// The default BatchOptions.Operation is "kafka:CLUSTER|TOPIC". CLUSTER is the ARN of the event
// source. For a self-managed cluster, CLUSTER is the list of bootstrap servers, sorted and
// separated by commas. Set Operation if that list may change: otherwise the handler runs again for
// a record that Lambda delivers again after the change.
//
// The handler receives the record as Lambda sends it: Key and Value are base64. A null value, which
// deletes a key from a compacted topic, arrives as an empty Value.
func (g *Guard) Kafka(h func(context.Context, events.KafkaRecord) error, optFns ...func(*BatchOptions[events.KafkaRecord])) func(context.Context, events.KafkaEvent) (KafkaEventResponse, error) {
	b := guardMessages(g, source[events.KafkaEvent, events.KafkaRecord]{
		list:           func(e events.KafkaEvent) []events.KafkaRecord { return listByList(e.Records) },
		convert:        kafkaMessage,
		limitedRetries: true,
	}, h, optFns)
	return reported(b, func(names []string) KafkaEventResponse {
		return KafkaEventResponse{BatchItemFailures: failuresOf(names, kafkaFailure)}
	})
}

// KafkaEventResponse is the response to a Kafka event: the records that Lambda must retry.
type KafkaEventResponse struct {
	BatchItemFailures []KafkaBatchItemFailure `json:"batchItemFailures"`
}

// KafkaBatchItemFailure is one failed record in a [KafkaEventResponse].
type KafkaBatchItemFailure struct {
	ItemIdentifier KafkaItemIdentifier `json:"itemIdentifier"`
}

// KafkaItemIdentifier identifies a record of a Kafka event by its partition and its offset.
type KafkaItemIdentifier struct {
	Partition string `json:"partition"` // the topic, a hyphen, and the number of the partition
	Offset    int64  `json:"offset"`
}

func kafkaMessage(e events.KafkaEvent, r events.KafkaRecord) message {
	partition := r.Topic + "-" + strconv.FormatInt(r.Partition, 10)
	offset := strconv.FormatInt(r.Offset, 10)
	// The id has the timestamp, because a topic that was deleted and created again has the same
	// offsets again.
	m := message{group: partition, id: partition + "-" + offset + "-" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10),
		parts: []string{r.Key}, form: []string{"key"}}
	if r.Topic != "" {
		m.name = partition + kafkaOffset + offset
	}
	if cluster := kafkaCluster(e); cluster != "" {
		m.source = PrincipalOf(kafkaOperation, cluster, r.Topic)
	}
	m.setData(r.Value)
	for _, header := range r.Headers {
		for _, name := range slices.Sorted(maps.Keys(header)) {
			m.attribute(name, "String", string(header[name]))
		}
	}
	return m
}

// kafkaOperation is the prefix of the default BatchOptions.Operation of Kafka records, which is
// "kafka:CLUSTER|TOPIC".
const kafkaOperation = "kafka"

// kafkaCluster returns the name of the cluster that an event comes from, or "" if the event does
// not say.
func kafkaCluster(e events.KafkaEvent) string {
	if e.EventSourceARN != "" {
		return e.EventSourceARN
	}
	servers := strings.Split(e.BootstrapServers, ",")
	slices.Sort(servers)
	return strings.Join(servers, ",")
}

// kafkaOffset separates the partition and the offset in message.name, such as "orders-0@12". A
// topic's name can't contain it.
const kafkaOffset = "@"

// kafkaFailure returns the batch item failure for a Kafka record. The parameter name is the
// message.name that kafkaMessage made for the Kafka record, such as "orders-0@12".
func kafkaFailure(name string) KafkaBatchItemFailure {
	partition, offset, _ := strings.Cut(name, kafkaOffset)
	number, _ := strconv.ParseInt(offset, 10, 64) // kafkaMessage has formatted it
	return KafkaBatchItemFailure{ItemIdentifier: KafkaItemIdentifier{Partition: partition, Offset: number}}
}
