// Package queue is an Amazon SQS in this process, for running SAM applications
// on a laptop: standard and FIFO queues behind the AWS JSON 1.0 protocol that
// today's SDKs and the AWS CLI speak, and a Go API for a poller such as
// Lambda's event source mapping.
//
//	server, err := queue.Start(ctx, queue.Options{})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	dead, err := server.CreateQueue("orders-dead", nil)
//	orders, err := server.CreateQueue("orders", map[string]string{
//		"VisibilityTimeout": "60",
//		"RedrivePolicy":     `{"deadLetterTargetArn":"` + dead.ARN() + `","maxReceiveCount":3}`,
//	})
//	os.Setenv("AWS_ENDPOINT_URL_SQS", server.URL()) // for the SDK's clients
//	batch, err := orders.ReceiveBatch(ctx, queue.BatchOptions{Size: 10})
//
// QUEUE.md says what is imitated and what is not.
//
// # Time
//
// All times come from package time, so that a test in a testing/synctest bubble
// sees days go by in no time. Nothing runs in the background: what a visibility
// timeout, a delay, a retention period or a redrive policy has changed since is
// found out by the next call that looks at the queue. A receive that waits wakes
// by itself when one of them ends.
//
// # Concurrency
//
// Everything is safe for concurrent use. One lock guards all queues of a
// Service, since messages move between them.
package queue
