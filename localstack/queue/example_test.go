package queue_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

func Example() {
	server, err := queue.Start(context.Background(), queue.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	dead, err := server.CreateQueue("orders-dead", nil)
	if err != nil {
		log.Fatal(err)
	}
	orders, err := server.CreateQueue("orders", map[string]string{
		"VisibilityTimeout": "60",
		"RedrivePolicy":     `{"deadLetterTargetArn":"` + dead.ARN() + `","maxReceiveCount":3}`,
	})
	if err != nil {
		log.Fatal(err)
	}
	// A client of the SDK would send by AWS_ENDPOINT_URL_SQS=server.URL().
	for _, body := range []string{"first", "second"} {
		if _, err := orders.Send(queue.Outgoing{Body: body}); err != nil {
			log.Fatal(err)
		}
	}

	// What Lambda's event source mapping does with a batch.
	batch, err := orders.ReceiveBatch(context.Background(), queue.BatchOptions{Size: 10})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range batch {
		record := m.Event()
		fmt.Println(record.EventSource, record.Body, record.Attributes["ApproximateReceiveCount"])
		if m.Body == "first" { // the second one failed: it comes back after its visibility timeout
			if err := orders.Delete(m.ReceiptHandle); err != nil {
				log.Fatal(err)
			}
		}
	}
	fmt.Printf("%+v\n", orders.Depth())
	// Output:
	// aws:sqs first 1
	// aws:sqs second 1
	// {Visible:0 InFlight:1 Delayed:0}
}
