// Package eventsource delivers what is in SQS queues and DynamoDB Streams to the
// functions of a template, as AWS Lambda's event source mappings do: for running
// SAM applications on a laptop.
//
//	sam, err := template.Read("template.yaml", template.Options{})
//	err = template.CreateTables(ctx, dynamodbClient, sam.Tables)
//	err = template.CreateQueues(ctx, sqsClient, sam.Queues)
//	e, err := emulator.Start(ctx, emulator.Options{Template: sam, SourcesDelivered: true, …})
//	m, err := eventsource.Start(ctx, eventsource.Options{
//		Template: sam, Invoke: e.Invoke, SQS: sqsClient, Streams: streamsClient,
//		Capacity: func(string) int { return maxProcesses }, // the emulator's
//	})
//	defer m.Close() // before the emulator's
//
// A batch fails in Lambda's ways: as a whole when the function returns an error,
// crashes or times out, in parts when the mapping has ReportBatchItemFailures.
// What fails comes back: from a queue by its visibility timeout, from a stream by
// a retry that holds back what comes after it.
//
// EVENTSOURCES.md says what is imitated and what is not.
package eventsource
