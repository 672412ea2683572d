package dynamostore_test

import (
	"context"
	"log"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// A Lambda function on a schedule that counts dead leases and held records. A look that
// fails writes no metrics, because every number would be too small.
func ExampleStore_DeadLeases_watch() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency", func(o *dynamostore.Options) { o.LeaseIndex = "leases" })
	metrics := emf.New(func(o *emf.Options) { o.Service = "payments" })
	lambda.Start(func(ctx context.Context) error {
		var found emf.DeadLeases
		for rec, err := range store.DeadLeases(ctx) {
			if err != nil {
				return err
			}
			log.Printf("record %s (%s): attempt %d died; held: %t", rec.ID, rec.Scope, rec.Attempt, rec.Held())
			found.Add(time.Since(rec.LeaseEnd), rec.Held())
		}
		metrics.DeadLeases(found, nil)
		return nil
	})
}
