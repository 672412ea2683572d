package dynamostore_test

import (
	"context"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// This example lists the attempts that died. It leaves out those of the last few minutes, because
// clients may still retry them.
func ExampleStore_DeadLeases() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency", func(o *dynamostore.Options) {
		o.LeaseIndex = "leases" // as the functions have it
	})
	long := func(o *dynamostore.DeadLeasesOptions) { o.Before = time.Now().Add(-10 * time.Minute) }
	for rec, err := range store.DeadLeases(context.Background(), long) {
		if err != nil {
			log.Fatal(err)
		}
		log.Printf("%s: attempt %d began at %v and died: %s", rec.ID, rec.Attempt, rec.StartedAt, rec.Scope)
	}
}
