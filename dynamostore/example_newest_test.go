package dynamostore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// objectRow is the row of an index that describes one object of a bucket.
type objectRow struct {
	ID        string `dynamodbav:"id"`
	ETag      string `dynamodbav:"etag"`
	Sequencer string `dynamodbav:"sequencer"`
}

// index writes the notification's data about an object, unless the index has newer data.
func index(ctx context.Context, r events.S3EventRecord) error {
	dynamostore.Enlist(ctx).
		PutValue("row", "objects", objectRow{
			ID:        r.S3.Bucket.Name + "/" + r.S3.Object.URLDecodedKey,
			ETag:      r.S3.Object.ETag,
			Sequencer: lambdaidem.SortableSequencer(r.S3.Object.Sequencer),
		}).
		If("attribute_not_exists(sequencer) OR sequencer < :this", dynamostore.Args{":this": lambdaidem.SortableSequencer(r.S3.Object.Sequencer)}).
		Else(lambdaidem.Answer(nil)) // older than what is there: nothing to do, and done
	return nil
}

// S3 notifications arrive in any order, and more than once. The condition keeps the data of the
// newest notification, and the guard handles each notification once.
func ExampleEnlist_newest() {
	ctx := context.Background()
	client := dynamodb.New(dynamodb.Options{ // in your function: dynamodb.NewFromConfig(cfg)
		Region: "eu-west-1", HTTPClient: &memdynamo.Client{DB: memdynamo.New(time.Now)}, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	for _, table := range []string{"idempotency", "objects"} {
		if err := dynamostore.CreateTable(ctx, client, table); err != nil {
			log.Fatal(err)
		}
	}
	handle := lambdaidem.New(dynamostore.New(client, "idempotency")).S3(index)

	notify := func(etag, sequencer string) {
		r := events.S3EventRecord{EventName: "ObjectCreated:Put"}
		r.S3.Bucket = events.S3Bucket{Name: "invoices", Arn: "arn:aws:s3:::invoices"}
		r.S3.Object = events.S3Object{Key: "may+2026.pdf", URLDecodedKey: "may 2026.pdf", ETag: etag, Sequencer: sequencer}
		err := handle(ctx, events.S3Event{Records: []events.S3EventRecord{r}})

		out, getErr := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("objects"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "invoices/may 2026.pdf"}}})
		if getErr != nil {
			log.Fatal(getErr)
		}
		var row objectRow
		if err := attributevalue.UnmarshalMap(out.Item, &row); err != nil {
			log.Fatal(err)
		}
		fmt.Println(etag, "arrived:", err, "- the index has", row.ETag)
	}
	notify("first", "0055AED6DCD90281E5")
	notify("third", "0055AED6DCD90281F0")
	notify("second", "0055AED6DCD90281E9")
	notify("third", "0055AED6DCD90281F0")
	// Output:
	// first arrived: <nil> - the index has first
	// third arrived: <nil> - the index has third
	// second arrived: <nil> - the index has third
	// third arrived: <nil> - the index has third
}
