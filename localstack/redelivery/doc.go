// Package redelivery proves on whole processes what simulator/deliveries
// proves in virtual time: consumers of SQS, SNS, EventBridge, Kinesis, DynamoDB
// Streams and Kafka do each message once, however it is delivered.
//
// The tests play the event source. They invoke one small function, package
// redelivery/consumer, in the Lambda emulator, and deliver again what its source
// would: whole batches, parts of them, out of order, twice in one batch, to two
// processes at a time, and after a process was killed. Each [Message] says what its
// handler is to do in each run; a [Ledger] in DynamoDB Local keeps what it did. At
// the end [Books.Audit] holds one against the other: one effect for each
// message, failures reported where there was one and nowhere else, each group in the
// order of its sending. A random round at the end is drawn from -seed:
//
//	go run ./localstack/cmd/with-dynamodb -- go test ./localstack/redelivery -run RandomRound -v -args -seed=7
package redelivery
