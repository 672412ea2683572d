// Package eventsource emulates AWS Lambda's event source mappings on a laptop: it invokes the
// functions of a SAM template with the messages of SQS queues and the records of DynamoDB
// Streams.
//
//	sam, err := template.Read("template.yaml", template.Options{})
//	err = template.CreateTables(ctx, dynamodbClient, sam.Tables)
//	err = template.CreateQueues(ctx, sqsClient, sam.Queues)
//	e, err := emulator.Start(ctx, emulator.Options{Template: sam, SourcesDelivered: true, …})
//	m, err := eventsource.Start(ctx, eventsource.Options{
//		Template: sam, Invoke: e.Invoke, SQS: sqsClient, Streams: streamsClient,
//		Capacity: func(string) int { return maxProcesses }, // the emulator's
//	})
//	defer m.Close() // before the emulator is closed
//
// As with Lambda, a whole batch fails if the function returns an error, crashes or times out. If
// the mapping has ReportBatchItemFailures, the function can also report single records as failed.
// A failed message becomes visible in its queue again after the visibility timeout. A failed
// record of a stream is retried, and the later records of its shard wait; with a
// ParallelizationFactor, at least those of the same item wait.
//
// localstack/EVENTSOURCES.md lists what is emulated and what is not.
package eventsource
