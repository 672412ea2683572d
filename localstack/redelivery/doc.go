// Package redelivery tests with real processes what package simulator/deliveries tests in virtual
// time: consumers of SQS, SNS, EventBridge, Kinesis, DynamoDB Streams and Kafka process each
// message once, however it is delivered.
//
// The tests act as the event source. They invoke one small function, redelivery/consumer, in the
// Lambda emulator. They redeliver messages as its source could: whole batches, parts of batches,
// out of order, twice in one batch, to two processes at the same time, and after a process was
// killed. Each [Message] says what its handler must do in each run, and a [Ledger] in DynamoDB
// Local records what the handler did. At the end, [Books.Audit] compares the two: each message
// has one effect, an answer reports exactly the messages that failed, and each group is in the
// order of sending. The last test is a random round that depends on the flag -seed:
//
//	go run ./localstack/cmd/with-dynamodb -- go test ./localstack/redelivery -run RandomRound -v -args -seed=7
package redelivery
